"""Fills the openb cluster with pods, one after the other, by the product's ranking of nodes, by FGD and by best fit.

The measures are computed for all nodes at once. The columns that decide are those of the product's NodeRank, in its
order, and the weights are the product's; every CHECKED pods, the loss is compared with that of the product's function.
As in the desk, the free cpu of nodes is rounded down in steps. Shares of a GPU exist only in this model.
"""

import json
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reconciler.fleet.devices.board import BoardLayout, Gpu
from reconciler.fleet.devices.fragmentation import MixRequest, RequestMix
from reconciler.fleet.devices.node_room import BITS, FreeAmounts, NodeRoom
from reconciler.fleet.devices.ranking import FILLED, PARTS, DemandWeights, NodeRank, node_value
from tests.benchmarks.devices.openb_workloads import Asked, Workload, arrivals, workload

DEMAND_PERCENT = 130
MIX_RENEWED = 250  # pods; the desk renews its mix every ten seconds
CHECKED = 400
BOARD = 8
COVERED_PERCENT = 95  # of the pods: the requests that FGD calls typical

Array = NDArray[Any]


class Cluster:
    """Owner of what is free. The parts of a node's GPUs are sorted, the largest first."""

    def __init__(self, found: Workload) -> None:
        nodes = found.nodes
        self.models = sorted({node.model for node in nodes})
        self.parts = np.array([[1_000 * (at < node.gpus) for at in range(BOARD)] for node in nodes], np.int64)
        self.cpu = np.array([node.cpu_milli for node in nodes], np.int64)
        self.memory = np.array([node.memory for node in nodes], np.int64)
        self.model = np.array([self.models.index(node.model) for node in nodes])
        self.most_milli, self.most_cpu = int(self.parts.sum()), int(self.cpu.max())

    def fitting(self, pod: Asked, rows: Array) -> Array:
        fits = (self.cpu[rows] >= pod.cpu_milli) & (self.memory[rows] >= pod.memory)
        if pod.models:
            fits &= np.isin(self.model[rows], [self.models.index(each) for each in pod.models if each in self.models])
        if pod.gpus:
            fits &= (self.parts[rows] >= pod.milli).sum(1) >= pod.gpus
        found: Array = rows[fits]
        return found

    def take(self, pod: Asked, row: int, gpu: int) -> None:
        self.cpu[row] -= pod.cpu_milli
        self.memory[row] -= pod.memory
        if pod.gpus:
            self.parts[row, gpu : gpu + pod.gpus] -= pod.milli
            self.parts[row] = np.sort(self.parts[row])[::-1]


class Options:
    """The places for a pod: each node with each of its GPUs that differ."""

    def __init__(self, cluster: Cluster, pod: Asked, rows: Array) -> None:
        gpus = range(BOARD) if 0 < pod.milli < 1_000 else range(1)
        found_rows, found_gpus, found_parts = [], [], []
        for gpu in gpus:
            parts = cluster.parts[rows]
            is_new = parts[:, gpu] >= pod.milli
            if gpu:
                is_new &= parts[:, gpu] != parts[:, gpu - 1]
            after = parts[is_new]
            after[:, gpu : gpu + pod.gpus] -= pod.milli
            found_rows.append(rows[is_new])
            found_gpus.append(np.full(len(after), gpu))
            found_parts.append(after)
        self.rows, self.gpus = np.concatenate(found_rows), np.concatenate(found_gpus)
        self.parts = np.concatenate(found_parts)  # what is left
        self.cpu = cluster.cpu[self.rows] - pod.cpu_milli
        self.model = cluster.model[self.rows]


class Requests:
    """Requests as arrays, and what each can use of nodes."""

    def __init__(self, requests: Sequence[MixRequest], models: Sequence[str]) -> None:
        self.gpus = np.array([each.gpus for each in requests], np.int64)
        self.milli = np.array([each.milli for each in requests], np.int64)
        self.cpu = np.array([each.cpu_milli for each in requests], np.int64)
        allowed = [[not each.model or model in each.model.split("|") for each in requests] for model in models]
        self.allowed = np.array(allowed, bool) & (self.gpus > 0)
        self.distinct, self.of_distinct = np.unique(np.maximum(self.milli, 1), return_inverse=True)

    def usable(self, parts: Array, cpu: Array, model: Array) -> tuple[Array, Array]:
        """Thousandths of GPUs by node and request: usable as FGD counts, and filled by such requests alone."""
        large = parts[:, None, :] >= self.distinct[None, :, None]
        counts = large.sum(-1)[:, self.of_distinct]
        amounts = (large * parts[:, None, :]).sum(-1)[:, self.of_distinct]
        runs = (counts >= self.gpus) & (cpu[:, None] >= self.cpu) & self.allowed[model]
        places = (parts[:, None, :] // self.distinct[None, :, None]).sum(-1)[:, self.of_distinct]
        by_cpu = np.where(self.cpu > 0, cpu[:, None] // np.maximum(self.cpu, 1), BOARD * 1_000)
        copies = np.minimum(places // np.maximum(self.gpus, 1), by_cpu)
        return amounts * runs, copies * self.gpus * self.milli * runs


class Policy(ABC):
    """The order of places: the first column that differs decides, the smallest value is the best."""

    has_known_mix = True  # of the whole workload, before the first pod

    def __init__(self, cluster: Cluster, pods: Sequence[Asked]) -> None:
        self.cluster = cluster

    def renew(self, pods: Sequence[Asked]) -> None:  # noqa: B027 - most policies need none
        """Takes over the mix of the pods that have arrived."""

    def placed(self, row: int) -> None:  # noqa: B027 - most policies need none
        """What is free on the node has changed."""

    @abstractmethod
    def columns(self, pod: Asked, options: Options) -> list[Array]:
        """Of all options."""


class BestFit(Policy):
    """The least cpu and GPUs left, each as a part of the largest node, in hundredths as the simulator of FGD scores."""

    def columns(self, pod: Asked, options: Options) -> list[Array]:
        left = options.cpu / self.cluster.most_cpu / 2 + options.parts.sum(1) / (1_000 * BOARD) / 2
        return [-np.floor(100 * (1 - left))]


class Fgd(Policy):
    """The least increase of fragmentation over the typical requests, in hundredths of a sigmoid as in its simulator."""

    def __init__(self, cluster: Cluster, pods: Sequence[Asked]) -> None:
        super().__init__(cluster, pods)
        typical, covered = list[tuple[MixRequest, int]](), 0
        for request, count in Counter(request_of(pod) for pod in pods).most_common():
            if covered * 100 >= COVERED_PERCENT * len(pods):
                break
            typical.append((request, count))
            covered += count
        self._requests = Requests([request for request, _ in typical], cluster.models)
        self._weights = np.array([count / covered for _, count in typical])
        self._before = self._fragments(cluster.parts, cluster.cpu, cluster.model)

    def placed(self, row: int) -> None:
        one, cluster = slice(row, row + 1), self.cluster
        self._before[one] = self._fragments(cluster.parts[one], cluster.cpu[one], cluster.model[one])

    def columns(self, pod: Asked, options: Options) -> list[Array]:
        increase = self._fragments(options.parts, options.cpu, options.model) - self._before[options.rows]
        return [-np.floor(100 / (1 + np.exp(increase / 1_000)))]

    def _fragments(self, parts: Array, cpu: Array, model: Array) -> Array:
        found: Array = parts.sum(1) - self._requests.usable(parts, cpu, model)[0] @ self._weights
        return found


class Product(Policy):
    """NodeRank, with the mix of the pods that have arrived."""

    has_known_mix = False

    def renew(self, pods: Sequence[Asked]) -> None:
        cluster = self.cluster
        mix = RequestMix(Counter(request_of(pod) for pod in pods if pod.gpus))
        self._requests = Requests([request for request, _ in mix.requests], cluster.models)
        amounts = self._amounts(cluster.parts, cluster.cpu, cluster.model)
        self.demand = DemandWeights(mix, [int(each) for each in amounts.sum(0)])
        self._weights = np.array(self.demand.weights, np.int64)
        self._before = amounts @ self._weights

    def placed(self, row: int) -> None:
        one, cluster = slice(row, row + 1), self.cluster
        self._before[one] = self._amounts(cluster.parts[one], cluster.cpu[one], cluster.model[one]) @ self._weights

    def columns(self, pod: Asked, options: Options) -> list[Array]:
        """Bandwidths are unknown, so they are equal."""
        before = self.cluster.parts[options.rows]
        lost = [(before == 1_000).sum(1) // size - (options.parts == 1_000).sum(1) // size for size in (2, 4, 8)]
        values = {"loss": [self.losses(options)], "lost_groups": lost, "free": [before.sum(1)]}
        return [column for field in NodeRank._fields for column in values.get(field, ())]

    def losses(self, options: Options) -> Array:
        usable, filled = self._requests.usable(options.parts, self._cpu_after(options), options.model)
        found: Array = self._before[options.rows] - ((PARTS - FILLED) * usable + FILLED * filled) @ self._weights
        return found

    def _cpu_after(self, options: Options) -> Array:
        before = self.cluster.cpu[options.rows]
        found: Array = np.maximum(0, options.cpu - (before - cpu_in_steps(before)))
        return found

    def _amounts(self, parts: Array, cpu: Array, model: Array) -> Array:
        usable, filled = self._requests.usable(parts, cpu_in_steps(cpu), model)
        found: Array = (PARTS - FILLED) * usable + FILLED * filled
        return found

    def check(self, options: Options) -> None:
        """Compares the losses of some places with those of the product's function."""
        if any("|" in request.model for request, _ in self.demand.mix.requests):
            return  # a GpuClaim has at most one model
        losses, cluster = self.losses(options), self.cluster
        for at in range(0, len(options.rows), 1 + len(options.rows) // 20):
            row, model = options.rows[at], cluster.models[options.model[at]]
            layout = BoardLayout(tuple(Gpu(each, 0, None, model) for each in range(BOARD)))
            cpu_before, cpu_after = cpu_in_steps(cluster.cpu[row : row + 1]), self._cpu_after(options)[at : at + 1]
            before = NodeRoom(tuple(cluster.parts[row].tolist()), FreeAmounts(int(cpu_before[0])))
            after = NodeRoom(tuple(options.parts[at].tolist()), FreeAmounts(int(cpu_after[0])))
            had, has = (node_value((layout, each), self.demand) for each in (before, after))
            assert had - has == losses[at]


POLICIES: dict[str, type[Policy]] = {"best_fit": BestFit, "fgd": Fgd, "product": Product}


def cpu_in_steps(cpu: Array) -> Array:
    """As the product rounds."""
    shifts = np.maximum(0, np.frexp(cpu.astype(float))[1] - BITS)
    found: Array = cpu >> shifts << shifts
    return found


def request_of(pod: Asked) -> MixRequest:
    return MixRequest(pod.gpus, pod.milli if pod.gpus else 1_000, "|".join(pod.models), cpu_milli=pod.cpu_milli)


class Known:
    """The best place on each node for pods of one kind, and the nodes that have changed since are found again."""

    def __init__(self, nodes: int) -> None:
        self.keys: list[Array] = []
        self.gpus = np.zeros(nodes, np.int64)
        self.fits = np.zeros(nodes, bool)
        self.log_position = 0
        self.dirty: Array = np.arange(nodes)


def fill(found: Workload, seed: int, policy_name: str) -> dict[str, float]:
    """GPUs allocated in percent, at the end and once all GPUs were asked for."""
    cluster, pods = Cluster(found), arrivals(found, seed, DEMAND_PERCENT)
    policy = POLICIES[policy_name](cluster, found.pods)
    known, log, asked, allocated = dict[Asked, Known](), list[int](), 0, 0
    at_100: float | None = None
    for number, pod in enumerate(pods):
        if not policy.has_known_mix and (number in {0, 20, 100} or number % MIX_RENEWED == 0):
            policy.renew(pods[: number + 1])
            known.clear()
        place = best_place(cluster, policy, pod, renewed(known, pod, log, len(cluster.cpu)), number)
        asked += pod.gpus * pod.milli
        if place is not None:
            cluster.take(pod, *place)
            policy.placed(place[0])
            log.append(place[0])
            allocated += pod.gpus * pod.milli
        if at_100 is None and asked >= cluster.most_milli:
            at_100 = 100 * allocated / cluster.most_milli
    return {"at_end": 100 * allocated / cluster.most_milli, "at_100": at_100 or 0.0}


def renewed(known: dict[Asked, Known], pod: Asked, log: list[int], nodes: int) -> Known:
    places = known.get(pod)
    if places is None:
        places = known[pod] = Known(nodes)
    else:
        places.dirty = np.array(sorted(set(log[places.log_position :])), np.int64)
    places.log_position = len(log)
    return places


def best_place(cluster: Cluster, policy: Policy, pod: Asked, places: Known, number: int) -> tuple[int, int] | None:
    """The node and the GPU; the first of equal nodes."""
    rows = cluster.fitting(pod, places.dirty)
    places.fits[places.dirty] = False
    places.fits[rows] = True
    if len(rows):
        options = Options(cluster, pod, rows)
        columns = policy.columns(pod, options)
        if isinstance(policy, Product) and number % CHECKED == 0:
            policy.check(options)
        order = np.lexsort((*columns[::-1], options.rows))
        is_first = np.append(True, np.diff(options.rows[order]) != 0)
        best = order[is_first]
        if not places.keys:
            places.keys = [np.zeros(len(places.gpus), column.dtype) for column in columns]
        for key, column in zip(places.keys, columns, strict=True):
            key[options.rows[best]] = column[best]
        places.gpus[options.rows[best]] = options.gpus[best]
    left = np.flatnonzero(places.fits)
    if not len(left):
        return None
    left = reduce(lambda rows, key: rows[key[rows] == key[rows].min()], places.keys, left)
    return int(left[0]), int(places.gpus[left[0]])


if __name__ == "__main__":
    name, seed, *policies = sys.argv[1:]
    found = workload(name)
    print(json.dumps({"source": found.source, **{each: fill(found, int(seed), each) for each in policies}}))
