"""Answers the scheduler extender: questions from the desk, Bindings by the API server.

A Binding goes through these steps. A live read of the pod: a pod that is bound to the node already is done, so that a
Binding whose answer was lost may be asked for again. A reservation in the desk. The Leases, then the Binding. A
definite failure ends the reservation and releases the Leases; an unknown outcome keeps both until the pod is observed,
or until it is clear that no Lease was created. So the same request may be repeated at any time, by any replica.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

from reconciler.controller.cluster import current_instant
from reconciler.fleet.devices.node_room import PodRequest
from reconciler.fleet.devices.ranking import NodeRank
from reconciler.fleet.pressure.pods import Placement
from reconciler.kube.binding import BindResult, LivePod, PodBinder
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, moment
from reconciler.model.plan.decision import Bind, Obstacle, Ref, Result
from reconciler.ports import Unavailable
from reconciler.protocol.desk import ClaimKey, Desk
from reconciler.protocol.extender import (
    HIGHEST_SCORE,
    AskingPod,
    BindAnswer,
    BindRequest,
    FilterAnswer,
    FilterRequest,
    NodeScore,
    PreemptAnswer,
    PreemptRequest,
)
from reconciler.protocol.node_groups import NodeAnswer
from reconciler.protocol.preconditions import WriteResult
from reconciler.protocol.pressure_desk import PressureDesk
from reconciler.report.extender_answers import not_ready, refusals, unbound, unsuitable, with_refusals
from reconciler.serve.claim_metrics import AllocationPhase, ClaimMetrics
from reconciler.serve.extender import NotReady

BIND_THREADS = 32  # each waits for the API server
UNKNOWN_SECONDS = 60.0  # longer than the requests of a Binding and their observation take
RELEASE_SECONDS = 60.0  # longer than the release of Leases takes, if there is a leader
_MOST_AWAITING = 1_000
_MOST_EQUAL = 100  # nodes that the scheduler scores by preferences of the pod


class SchedulerExtender:
    """Called on the main thread, which owns the desk."""

    def __init__(
        self, desk: Desk, binder: PodBinder, metrics: ClaimMetrics | None = None, pressure: PressureDesk | None = None
    ) -> None:
        self._desk, self._binder, self._pressure = desk, binder, pressure or PressureDesk()
        self._metrics = metrics or ClaimMetrics()
        self._refused: tuple[str, frozenset[str]] = "", frozenset()  # the last pod that no node serves, and the nodes
        self._awaiting: dict[str, float] = {}  # pods that preempt nobody because of a release, by uid; since when
        self._threads = ThreadPoolExecutor(BIND_THREADS, thread_name_prefix="bind")

    def close(self) -> None:
        """Starts no more Bindings."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def why_unready(self) -> str:
        """Why it cannot answer yet; empty if it can."""
        return self._desk.why_unready

    # --- Questions

    def filter(self, request: FilterRequest) -> FilterAnswer:
        """The best nodes only: kube-scheduler is up to twice as fast if it need not score others. Several nodes if
        they are equal and the pod prefers some nodes.
        """
        node_names = request.node_names or []
        if self._pressure.is_idle:
            return self._filter_by_claim(request, node_names)
        placement = Placement.of(request.pod.pod)
        refused = self._pressure.refusals(placement, node_names)
        suitable = [name for name in node_names if name not in refused]
        calm = [name for name in suitable if self._pressure.stays_below_watermark(placement, name)]
        answer = self._filter_by_claim(request, calm) if calm else None
        if answer is None or not (answer.node_names or answer.error):
            answer = self._filter_by_claim(request, suitable)
        return with_refusals(answer, refused) if not answer.node_names else answer

    def _filter_by_claim(self, request: FilterRequest, node_names: list[str]) -> FilterAnswer:
        claim = _claim_of(request.pod)
        if claim is None:
            return FilterAnswer(node_names)
        if why := self._desk.why_unready:
            self._metrics.fail(_NOT_READY)
            return not_ready(why)
        answers = self._desk.answers(claim, node_names, request.pod.metadata.uid, PodRequest.of(request.pod.pod))
        ranks = _ranks(answers.values())
        if not ranks:
            self._metrics.fail(_most_frequent(answers.values()))
            self._refused = request.pod.metadata.uid, frozenset(node_names)
            return refusals({name: each.obstacle for name, each in answers.items() if each.obstacle is not None})
        best = min(ranks.values())
        best_answers = {answer for answer, rank in ranks.items() if rank == best}
        equal = (name for name, each in answers.items() if each in best_answers)
        return FilterAnswer(list(islice(equal, _MOST_EQUAL if request.pod.spec.prefers_nodes else 1)))

    def prioritize(self, request: FilterRequest) -> list[NodeScore]:
        """Scores by rank: the best nodes have the highest score, ranks far behind share the score 0."""
        claim, node_names = _claim_of(request.pod), request.node_names or []
        if claim is None and self._pressure.is_idle:
            return [NodeScore(name, 0) for name in node_names]
        if claim is None:
            placement = Placement.of(request.pod.pod)
            calm = (name for name in node_names if self._pressure.stays_below_watermark(placement, name))
            by_name = dict.fromkeys(node_names, 0) | dict.fromkeys(calm, HIGHEST_SCORE)
            return [NodeScore(name, score) for name, score in by_name.items()]
        answers = self._desk.answers(claim, node_names, request.pod.metadata.uid, PodRequest.of(request.pod.pod))
        ranks = _ranks(answers.values())
        places = {rank: place for place, rank in enumerate(sorted(set(ranks.values())))}
        scores = {answer: max(0, HIGHEST_SCORE - places[rank]) for answer, rank in ranks.items()}
        return [NodeScore(name, scores.get(each, 0)) for name, each in answers.items()]

    def preempt(self, request: PreemptRequest) -> PreemptAnswer:
        """The nodes on which the pod gets its GPUs once the victims are gone. None while Leases of ended pods are about
        to be released, such as those of earlier victims: kube-scheduler does not know Leases, and would evict pods of
        another node. Raises NotReady.
        """
        claim, nodes = _claim_of(request.pod), request.node_name_to_meta_victims or {}
        if claim is None:
            return PreemptAnswer(nodes)
        if why := self._desk.why_unready:
            self._metrics.fail(_NOT_READY)
            raise NotReady(why)
        if self._awaits_release(claim, request.pod):
            return PreemptAnswer()
        return PreemptAnswer(
            {
                node: victims
                for node, victims in nodes.items()
                if self._desk.serves_without(claim, node, [each.uid for each in victims.pods or ()])
            }
        )

    def _awaits_release(self, claim: ClaimKey, pod: AskingPod) -> bool:
        """For a while only: kube-scheduler may exclude the node for reasons that nobody else knows."""
        uid, refused, nominated = pod.metadata.uid, frozenset[str](), pod.status.nominated_node_name
        if self._refused[0] == uid:  # otherwise another replica may have refused nodes
            refused = self._refused[1]
            nominated = nominated if nominated in refused else ""
        if not self._desk.awaits_release(claim, refused, nominated):
            self._awaiting.pop(uid, None)
            return False
        if len(self._awaiting) >= _MOST_AWAITING:
            self._awaiting.clear()
        now = time.monotonic()
        return now - self._awaiting.setdefault(uid, now) < RELEASE_SECONDS

    # --- Bindings

    async def bind(self, request: BindRequest) -> BindAnswer:
        """Bind a pod. Every failure is an answer: the scheduler tries the pod again."""
        pod = Ref("Pod", request.namespace, request.name, request.uid)
        try:
            return await self._bind(pod, request.node)
        except Unavailable as error:
            self._metrics.fail(_UNAVAILABLE)
            return unbound(pod, str(error))

    async def _bind(self, ref: Ref, node: str) -> BindAnswer:
        """Raises Unavailable before anything is reserved."""
        loop, asked_at, began = asyncio.get_running_loop(), current_instant(), time.monotonic()
        read = await loop.run_in_executor(self._threads, self._binder.read, ref)
        if read is None:
            self._metrics.fail(_POD_GONE)
            return unbound(ref, "the pod no longer exists")
        pod = read.pod
        if pod.node == node:
            return BindAnswer()
        if pod.node:
            self._metrics.fail(_BOUND_ELSEWHERE)
            return unbound(ref, f"the pod is bound to Node/{pod.node}")
        obstacle = self._pressure.reserve(pod, node)
        if obstacle is not None:
            self._metrics.fail(type(obstacle).__name__)
            return unsuitable(ref, node, obstacle)
        if pod.metadata.annotations.claim:
            answer, result = await self._bind_with_gpus(ref, node, read, _Times(asked_at, began))
        else:
            bind = Bind(node=node, leases=(), annotations=())
            bound = await loop.run_in_executor(self._threads, self._binder.bind, ref, bind, read)
            answer, result = _answer(ref, bound.written), bound.written.result
        if result == "unknown":
            loop.call_later(UNKNOWN_SECONDS, self._pressure.end_reservation, ref.uid, node)
        elif result != "done":
            self._pressure.end_reservation(ref.uid, node)
        return answer

    async def _bind_with_gpus(self, ref: Ref, node: str, read: LivePod, times: "_Times") -> tuple[BindAnswer, Result]:
        loop, pod = asyncio.get_running_loop(), read.pod
        if why := self._desk.why_unready:
            self._metrics.fail(_NOT_READY)
            return unbound(ref, why), "retry"
        reservation = self._desk.reserve(pod, node)
        if isinstance(reservation, Obstacle):
            self._metrics.fail(type(reservation).__name__)
            return unsuitable(ref, node, reservation), "refused"
        reserved_seconds, owner = time.monotonic() - times.began, self._desk.node(node)
        result = await loop.run_in_executor(self._threads, self._binder.bind, ref, reservation.bind, read, owner)
        if result.written.result == "unknown":
            loop.call_later(UNKNOWN_SECONDS, self._desk.give_up, reservation)
        elif result.written.result != "done":
            self._desk.end_reservation(reservation)
        if result.written.result == "done":
            self._metrics.allocated(_durations(pod, times.asked_at, reserved_seconds, result))
        else:
            self._metrics.fail(f"Write{result.written.result.capitalize()}")
        return _answer(ref, result.written), result.written.result


class _Times(NamedTuple):
    """When the scheduler asked for a Binding, by the clock and in seconds of this process."""

    asked_at: Instant
    began: float


# Reasons of failures besides the classes of obstacles, and WriteStale, WriteRefused, WriteRetry, WriteUnknown.
_NOT_READY, _UNAVAILABLE, _NO_NODES = "NotReady", "Unavailable", "NoNodes"
_POD_GONE, _BOUND_ELSEWHERE = "PodGone", "BoundElsewhere"


def _most_frequent(answers: Iterable[NodeAnswer]) -> str:
    """The class of obstacle that excludes most nodes; of equal ones the first by name."""
    counts = Counter([type(each.obstacle).__name__ for each in answers])
    return min(counts, key=lambda name: (-counts[name], name), default=_NO_NODES)


def _durations(
    pod: Pod, asked_at: Instant, reserved_seconds: float, result: BindResult
) -> Iterator[tuple[AllocationPhase, float]]:
    created_at = moment(pod.metadata.creation_timestamp)
    if created_at is not None:
        yield "queue", (asked_at - created_at) / 1_000
    yield "reserve", reserved_seconds
    yield "leases", result.leases_seconds
    yield "binding", result.binding_seconds


def _answer(pod: Ref, result: WriteResult) -> BindAnswer:
    return BindAnswer() if result.result == "done" else unbound(pod, result.detail)


def _claim_of(pod: AskingPod) -> ClaimKey | None:
    claim = pod.metadata.annotations.claim
    return (pod.metadata.namespace, claim) if claim else None


def _ranks(answers: Iterable[NodeAnswer]) -> dict[NodeAnswer, NodeRank]:
    """The ranks of the answers that are no refusals: nodes that answer alike share an answer."""
    return {each: each.rank for each in set(answers) if each.rank is not None}
