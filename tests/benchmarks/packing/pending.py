"""Pods that wait and shapes to buy for them, pods read as what an API server sends is read; the same for each size."""

import json
import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from reconciler.fleet.binpack.offers import Offering, Shape
from reconciler.kube.decode import page
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.pod import Pod

PAGE = 500
DEVIATION = 50  # millicores, by which requests differ that are all distinct

# Karpenter's own scheduling benchmark, as facts about it: instance type i of 400, and its pods.
TYPES = 400
MIB = 2**20
CPU_MILLI, MEMORY_MIB, PODS = 1000, 2048, 10  # for each i
KEPT_MILLI, KEPT_MIB = 100, 10  # of each node, for the system
OFFERED = (("a", "spot"), ("b", "spot"), ("a", "on-demand"), ("b", "on-demand"), ("c", "on-demand"))
LETTERS = "abcdefg"
CPUS_MILLI = (100, 250, 500, 1000, 1500)
MEMORIES_MIB = (100, 256, 512, 1024, 2048, 4096)

Words = dict[str, Any]


class Pending(NamedTuple):
    """What is to be packed."""

    pods: tuple[Pod, ...]
    shapes: list[Shape]


def equal(count: int) -> Pending:
    """Pods of 200 m, all of one ReplicaSet, and nodes of 10,000 m."""
    amounts = {"cpu": "200m"}
    return Pending(read(owned(number, amounts) for number in range(count)), [one_shape()])


def distinct(count: int) -> Pending:
    """As much in all, but no pod asks for just what another does."""
    words = (
        owned(number, {"cpu": f"{200 - DEVIATION + number % (2 * DEVIATION + 1)}m", "memory": str(2**28 + number)})
        for number in range(count)
    )
    return Pending(read(words), [one_shape()])


def diverse(count: int) -> Pending:
    """A fifth each: pods like any others, spread over zones, over hosts, near their like, apart from their like."""
    chance = random.Random(count)
    makers = (plain, spread_over(names.ZONE), spread_over(names.HOSTNAME), near_their_like, apart_from_their_like)
    made = (maker(chance) for maker in makers for _ in range(count // len(makers)))
    return Pending(
        read(
            pod(number, labels, {"containers": [main(amounts_of(chance))]} | spec)
            for number, (labels, spec) in enumerate(made)
        ),
        instance_types(),
    )


PENDING: dict[str, Callable[[int], Pending]] = {"equal": equal, "distinct": distinct, "diverse": diverse}


def one_shape() -> Shape:
    allocatable = {"cpu": "10", "memory": "1000Gi", "pods": "1000"}
    return Shape("only", {}, (), allocatable, (Offering("a", "on-demand", 1_000_000),))


def instance_types() -> list[Shape]:
    """Price is 0.1 a cpu and 0.1 for 10^9 bytes of memory."""
    return [
        Shape(
            f"type-{number:03}",
            {names.INSTANCE_TYPE: f"type-{number:03}"},
            (),
            {
                "cpu": f"{number * CPU_MILLI - KEPT_MILLI}m",
                "memory": f"{number * MEMORY_MIB - KEPT_MIB}Mi",
                "pods": str(number * PODS),
            },
            tuple(Offering(zone, kind, price_of(number)) for zone, kind in OFFERED),
        )
        for number in range(1, TYPES + 1)
    ]


def price_of(number: int) -> int:
    return round(100_000 * number * (CPU_MILLI / 1000 + MEMORY_MIB * MIB / 10**9))


def plain(chance: random.Random) -> tuple[Words, Words]:
    return {"my-label": chance.choice(LETTERS)}, {}


def spread_over(key: str) -> Callable[[random.Random], tuple[Words, Words]]:
    """Over pods of a label that need not be their own."""

    def made(chance: random.Random) -> tuple[Words, Words]:
        counted = {"matchLabels": {"my-label": chance.choice(LETTERS)}}
        rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": counted}
        return {"my-label": chance.choice(LETTERS)}, {"topologySpreadConstraints": [rule]}

    return made


def near_their_like(chance: random.Random) -> tuple[Words, Words]:
    labels = {"near-label": chance.choice(LETTERS)}
    return labels, {"affinity": {"podAffinity": required(names.ZONE, labels)}}


def apart_from_their_like(_: random.Random) -> tuple[Words, Words]:
    labels = {"app": "nginx"}
    return labels, {"affinity": {"podAntiAffinity": required(names.HOSTNAME, labels)}}


def required(key: str, labels: Words) -> Words:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def amounts_of(chance: random.Random) -> Words:
    return {"cpu": f"{chance.choice(CPUS_MILLI)}m", "memory": f"{chance.choice(MEMORIES_MIB)}Mi"}


def main(amounts: Words) -> Words:
    return {"name": "main", "resources": {"requests": amounts}}


def owned(number: int, amounts: Words) -> Words:
    words = pod(number, {"app": "web"}, {"containers": [main(amounts)]})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    return words | {"metadata": words["metadata"] | {"ownerReferences": [owner]}}


def pod(number: int, labels: Words, spec: Words) -> Words:
    metadata = {"name": f"pod-{number:06}", "namespace": "default", "uid": f"uid-{number}", "labels": labels}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def read(words: Iterator[Words]) -> tuple[Pod, ...]:
    seen = next(each for each in RESOURCE_KINDS if each.kind == "Pod")
    found: list[Pod] = []
    while items := list(islice(words, PAGE)):
        raw = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}
        found += page(seen, json.dumps(raw).encode()).items
    return tuple(found)
