"""Answers the scheduler extender: questions from the desk, Bindings by the API server.

A Binding goes through these steps. A live read of the pod: a pod that is bound to the node already is done, so that a
Binding whose answer was lost may be asked for again. A reservation in the desk. The Leases, then the Binding. A
definite failure ends the reservation and releases the Leases; an unknown outcome keeps both until the pod is observed.
So the same request may be repeated at any time, by any replica.
"""

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from reconciler.fleet.devices.ranking import NodeRank
from reconciler.kube.binding import PodBinder
from reconciler.model.plan.decision import Bind, Obstacle, Ref
from reconciler.ports import Unavailable
from reconciler.protocol.desk import ClaimKey, Desk, NodeAnswer
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
from reconciler.protocol.preconditions import WriteResult
from reconciler.report.extender_answers import not_ready, refusals, unbound, unsuitable

BIND_THREADS = 32  # each waits for the API server
_MOST_EQUAL = 100  # nodes that the scheduler scores by preferences of the pod


class SchedulerExtender:
    """Called on the main thread, which owns the desk."""

    def __init__(self, desk: Desk, binder: PodBinder) -> None:
        self._desk, self._binder = desk, binder
        self._threads = ThreadPoolExecutor(BIND_THREADS, thread_name_prefix="bind")

    def close(self) -> None:
        """Starts no more Bindings."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    # --- Questions

    def filter(self, request: FilterRequest) -> FilterAnswer:
        """The best nodes only: kube-scheduler is up to twice as fast if it need not score others. Several nodes if
        they are equal and the pod prefers some nodes.
        """
        claim, node_names = _claim_of(request.pod), request.node_names or []
        if claim is None:
            return FilterAnswer(node_names)
        if why := self._desk.why_unready:
            return not_ready(why)
        answers = self._desk.answers(claim, node_names)
        ranks = _ranks(answers.values())
        if not ranks:
            return refusals({name: each.obstacle for name, each in answers.items() if each.obstacle is not None})
        best = min(ranks.values())
        best_groups = {group for group, rank in ranks.items() if rank == best}
        equal = (name for name, each in answers.items() if id(each) in best_groups)
        return FilterAnswer(list(islice(equal, _MOST_EQUAL if request.pod.spec.prefers_nodes else 1)))

    def prioritize(self, request: FilterRequest) -> list[NodeScore]:
        """Scores by rank: the best nodes have the highest score, ranks far behind share the score 0."""
        claim, node_names = _claim_of(request.pod), request.node_names or []
        if claim is None:
            return [NodeScore(name, 0) for name in node_names]
        answers = self._desk.answers(claim, node_names)
        ranks = _ranks(answers.values())
        places = {rank: place for place, rank in enumerate(sorted(set(ranks.values())))}
        scores = {group: max(0, HIGHEST_SCORE - places[rank]) for group, rank in ranks.items()}
        return [NodeScore(name, scores.get(id(each), 0)) for name, each in answers.items()]

    def preempt(self, request: PreemptRequest) -> PreemptAnswer:
        """The nodes on which the pod gets its GPUs once the victims are gone."""
        claim, nodes = _claim_of(request.pod), request.node_name_to_meta_victims or {}
        if claim is None:
            return PreemptAnswer(nodes)
        return PreemptAnswer(
            {
                node: victims
                for node, victims in nodes.items()
                if self._desk.serves_without(claim, node, [each.uid for each in victims.pods or ()])
            }
        )

    # --- Bindings

    async def bind(self, request: BindRequest) -> BindAnswer:
        """Bind a pod. Every failure is an answer: the scheduler tries the pod again."""
        pod = Ref("Pod", request.namespace, request.name, request.uid)
        try:
            return await self._bind(pod, request.node)
        except Unavailable as error:
            return unbound(pod, str(error))

    async def _bind(self, ref: Ref, node: str) -> BindAnswer:
        """Raises Unavailable before anything is reserved."""
        loop = asyncio.get_running_loop()
        read = await loop.run_in_executor(self._threads, self._binder.read, ref)
        if read is None:
            return unbound(ref, "the pod no longer exists")
        pod = read.pod
        if pod.node:
            return BindAnswer() if pod.node == node else unbound(ref, f"the pod is bound to Node/{pod.node}")
        if not pod.metadata.annotations.claim:
            bind = Bind(node=node, leases=(), annotations=())
            return _answer(ref, await loop.run_in_executor(self._threads, self._binder.bind, ref, bind, read))
        if why := self._desk.why_unready:
            return unbound(ref, why)
        reservation = self._desk.reserve(pod, node)
        if isinstance(reservation, Obstacle):
            return unsuitable(ref, node, reservation)
        owner = self._desk.node(node)
        result = await loop.run_in_executor(self._threads, self._binder.bind, ref, reservation.bind, read, owner)
        if result.result not in {"done", "unknown"}:
            self._desk.end_reservation(reservation)
        return _answer(ref, result)


def _answer(pod: Ref, result: WriteResult) -> BindAnswer:
    return BindAnswer() if result.result == "done" else unbound(pod, result.detail)


def _claim_of(pod: AskingPod) -> ClaimKey | None:
    claim = pod.metadata.annotations.claim
    return (pod.metadata.namespace, claim) if claim else None


def _ranks(answers: Iterable[NodeAnswer]) -> dict[int, NodeRank]:
    """The ranks of the answers that are no refusals, by identity: nodes of one group share an answer."""
    distinct = {id(each): each.rank for each in answers}
    return {group: rank for group, rank in distinct.items() if rank is not None}
