"""Boards, claims, mixes and Leases from the compact words of tests/cases/gpu/."""

import re
from typing import Any

from reconciler.fleet.devices.board import Board, read_board
from reconciler.fleet.devices.fragmentation import MixRequest, RequestMix
from reconciler.fleet.devices.node_room import WHOLE
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Lease, LeaseSpec, Metadata, OwnerReference
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.policy.gpu import ClaimedDevices, Devices
from reconciler.model.quantity import Quantity
from tests import builders

Words = dict[str, Any]

NODE = "n1"
_TOKEN = re.compile(r"(?:(\d+)x)?([A-Z-])(\d+|\?)")


def board_of(case: Words) -> Board:
    """The board of `board`, `ids`, `unhealthy`, `models`, `memories`, `suspended` and `pool`."""
    return read_board(node_of(case), report_of(case), pool_of(case))


def node_of(case: Words) -> Node:
    return builders.node(NODE, gpus=case.get("allocatable"))


def pool_of(case: Words) -> Devices | None:
    """The devices of the pool, with defaults; None for `pool: null`."""
    said = case.get("pool", {})
    if said is None:
        return None
    pool = {"model": "h100", "count": 8, "memory": "80Gi"} | said
    return Devices(model=pool["model"], count=pool["count"], memory=Quantity.parse(pool["memory"]))


def report_of(case: Words) -> Unstructured | None:
    """`board` is words such as `4xA600 B64 -?`: island or -, and GB/s or ?. `devices` are the entries as they are."""
    if "board" not in case and "devices" not in case:
        return None
    devices = case["devices"] if "devices" in case else _entries(case)
    rest = {"spec": {"suspend": case.get("suspended", False)}, "status": {"devices": devices}}
    return Unstructured("gpu.scheduling/v1", "GpuNodeStatus", UnstructuredMetadata(NODE), rest)


def _entries(case: Words) -> list[Words]:
    gpus = [found for word in case["board"].split() for found in _gpus(word)]
    ids = case.get("ids", range(len(gpus)))
    entries = []
    for device_id, (island, bandwidth) in zip(ids, gpus, strict=True):
        entry: Words = {"id": device_id, "uuid": f"GPU-{device_id}"}
        entry |= {"island": island} if island else {}
        entry |= {} if bandwidth is None else {"bandwidthGBps": bandwidth}
        entry |= {"health": "Unhealthy"} if device_id in case.get("unhealthy", ()) else {}
        entry |= {"model": case["models"][device_id]} if device_id in case.get("models", {}) else {}
        entry |= {"memory": case["memories"][device_id]} if device_id in case.get("memories", {}) else {}
        entries.append(entry)
    return entries


def _gpus(word: str) -> list[tuple[str, int | None]]:
    match = _TOKEN.fullmatch(word)
    assert match, word
    one = ("" if match[2] == "-" else match[2], None if match[3] == "?" else int(match[3]))
    return [one] * int(match[1] or 1)


def claim_of(words: int | Words) -> ClaimedDevices:
    """A number of GPUs, or the devices of a claim."""
    said: Words = {"count": words} if isinstance(words, int) else words
    memory = Quantity.parse(said["memory"]) if "memory" in said else None
    return ClaimedDevices(count=said["count"], policy=said.get("policy", "any"), model=said.get("model"), memory=memory)


def mix_of(words: list[Words]) -> RequestMix:
    """Requests with their `times`."""
    return RequestMix({_request(each): each.get("times", 1) for each in words})


def _request(words: Words) -> MixRequest:
    return MixRequest(
        gpus=words["gpus"],
        milli=words.get("milli", WHOLE),
        model=words.get("model", ""),
        gpu_memory_milli=Quantity.parse(words["gpu_memory"]).milli if "gpu_memory" in words else 0,
        is_one_island=words.get("one_island", False),
        cpu_milli=1_000 * words.get("cpu", 0),
        memory=words.get("memory", 0),
    )


def lease_of(name: str, words: Words, node: str = NODE) -> Lease:
    """A Lease: `holder`, and its annotations `id` and `uuid`."""
    annotations = Annotations(device=str(words.get("id", "")), device_uuid=words.get("uuid", ""))
    owner = OwnerReference("Node", words.get("node", node), f"uid-{node}")
    metadata = Metadata(
        name, names.LEASES_NAMESPACE, annotations=annotations, owner_references=() if words.get("unowned") else (owner,)
    )
    return Lease(metadata, LeaseSpec(words.get("holder", "")))
