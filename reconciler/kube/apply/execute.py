"""Executes a decision: reads the object, writes, and reads again until the outcome is known or the time limit ends.

Each attempt begins by reading the object, so nothing is written twice: a read settles what a broken connection left
open. If it cannot be settled, the outcome is `unknown`.
"""

import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress

import msgspec

from reconciler.kube.api_server import ApiRequest, ApiResponse, Backoff, BackoffBounds, BadPath, Unreachable, Writer
from reconciler.kube.apply.device_leases import LeaseBinding
from reconciler.kube.apply.events import Events, event_notes, is_reported, pool_event_notes
from reconciler.kube.apply.fenced_writer import (
    Bucket,
    FencedWriter,
    FenceFell,
    Meaning,
    NotSeen,
    WriteLimits,
    error_text,
    meaning_of,
    uid_in,
)
from reconciler.kube.apply.verbs import eviction, next_write, path_of
from reconciler.kube.decode import Undecodable, one
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Bind, Decision, Evict, Hold, Outcome, Preconditions
from reconciler.ports import Fence
from reconciler.protocol.preconditions import (
    DONE,
    NO_LONGER_OURS,
    Object,
    WriteResult,
    leaves,
    no_longer_whole,
    not_gone,
    occupied,
)
from reconciler.protocol.write_order import WriteOrder, verb_of

# --- Executes decisions on a real cluster. Owner of the writer threads while a plan is executed.
#
# Threads, because a write takes the API server some milliseconds and a plan may have thousands of writes. A failed
# write stops only the writes that depend on it.


class Executor:
    """Writes with one identity to one cluster; `namespace` holds the Leases of lent devices."""

    def __init__(
        self, server: Writer, namespace: str = names.LEASES_NAMESPACE, limits: WriteLimits | None = None
    ) -> None:
        limits = limits or WriteLimits()
        self._server, self._namespace, self._limits = server, namespace, limits
        self._bucket = Bucket(limits.writes_per_second, limits.burst)
        self.events = Events(server, limits.events_per_second, limits.burst_of_events)

    def apply(self, decisions: Sequence[Decision], fence: Fence) -> Iterator[Outcome]:
        """Executes all decisions except holds and `would`; yields one outcome each, as they complete.

        Nothing is sent before iteration starts, and decisions not started when iteration stops are never started.
        """
        turns = WriteOrder(decisions)
        pen = FencedWriter(self._server, self._bucket, fence, self._limits)
        threads = ThreadPoolExecutor(self._limits.threads, thread_name_prefix="apply")
        under_way: set[Future[Outcome]] = set()
        written: list[Decision] = []
        try:
            while True:
                under_way |= {threads.submit(self._carried_out, each, pen, written) for each in turns.ready()}
                if not under_way:
                    break
                ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                outcomes = [each.result() for each in ended]
                for outcome in outcomes:
                    turns.ended(outcome)
                yield from outcomes
        finally:
            threads.shutdown(cancel_futures=True)
            for note in pool_event_notes(written) if pen.may_write else ():
                self.events.tell(note)
        yield from turns.left()

    def _carried_out(self, decision: Decision, pen: FencedWriter, written: list[Decision]) -> Outcome:
        """Executes one decision; appends written objects to `written`."""
        try:
            execution = WriteExecution(decision, pen, self._namespace)
            settled = execution.carry_out()
        except Exception as fault:  # noqa: BLE001 - what one object brings out must not stop the others
            text = f"aborted by a bug of reconciler or an invalid response: {type(fault).__name__}: {fault}"
            return Outcome(decision.subject, verb_of(decision), "unknown", text)
        if execution.wrote and is_reported(decision) and pen.may_write:
            written.append(decision)
            for each in event_notes(decision, execution.uid):
                self.events.tell(each)
        return Outcome(decision.subject, verb_of(decision), settled.result, settled.detail)


def _dry(request: ApiRequest) -> ApiRequest:
    body = msgspec.json.decode(request.body)
    body["deleteOptions"]["dryRun"] = ["All"]
    return msgspec.structs.replace(request, body=msgspec.json.encode(body, order="sorted"))


_NODES = next(each for each in RESOURCE_KINDS if each.field == "nodes")
_WAITS = BackoffBounds(first_seconds=0.2, most_seconds=5.0)


class Again(msgspec.Struct, frozen=True):
    """A result that may be retried after a delay; final if there is no retry."""

    otherwise: WriteResult
    wait_seconds: float = 0.0
    is_at_once: bool = False


class KnownObjects(msgspec.Struct, frozen=True):
    """Objects that the caller has read. Only the first attempt relies on them: each retry reads again."""

    subject: Object | None = None
    node: Object | None = None  # of a Binding


class WriteExecution:
    """Owner of the state of one decision in execution."""

    def __init__(
        self, decision: Decision, pen: FencedWriter, namespace: str, known: KnownObjects | None = None
    ) -> None:
        self._decision, self._pen, self._known = decision, pen, known or KnownObjects()
        act = decision.act
        self._lending = LeaseBinding(decision.subject, act, namespace, pen) if isinstance(act, Bind) else None
        self._others = act.others if isinstance(act, Evict) else ()
        self._has_begun = False  # a real eviction of pods that are evicted together was sent
        self._presumes = Preconditions() if isinstance(act, Hold) else act.presumes
        self._is_to_be_empty = self._presumes.empty
        self.wrote = False
        self.uid = ""  # uid of the object in the response to a write
        self.lent_at: float | None = None  # monotonic seconds: when a pod held the Leases of all its GPUs
        self._in_doubt = False  # a request was sent and its effect is unknown

    def carry_out(self) -> WriteResult:
        """Never raises for a response or a missing response."""
        try:
            settled = self._tried()
        except FenceFell:
            settled = WriteResult("unknown", NO_LONGER_OURS.detail) if self._in_doubt else NO_LONGER_OURS
        except (BadPath, Undecodable) as fault:
            settled = WriteResult("refused", str(fault))
        if self._lending is not None and settled.result != "done" and not self._in_doubt:
            with suppress(NotSeen, Unreachable, FenceFell):  # the planner releases what is left
                self._lending.give_back()
        self.wrote |= self._in_doubt and settled.result == "done"
        return settled

    def _tried(self) -> WriteResult:
        backoff = Backoff(_WAITS, random.Random())  # noqa: S311 - of no secret
        otherwise = WriteResult("retry")
        limits = self._pen.limits
        was_quiet = True  # a second consecutive conflict means that another writer is busy: do not race
        ends = limits.clock() + limits.patience_seconds
        for left in reversed(range(limits.attempts)):
            step = self._step()
            if isinstance(step, WriteResult):
                return step
            self._known = KnownObjects()
            otherwise = step.otherwise
            is_at_once = step.is_at_once and was_quiet
            wait_seconds = 0.0 if is_at_once else max(step.wait_seconds, backoff.seconds_after(0))
            wait_seconds = min(wait_seconds, limits.longest_wait_seconds)
            if not left or limits.clock() + wait_seconds > ends:
                break
            self._pen.wait(wait_seconds)
            was_quiet = False
        if self._in_doubt and otherwise.result == "retry":
            return WriteResult("unknown", otherwise.detail)
        return otherwise

    def _step(self) -> WriteResult | Again:
        try:
            return self._attempt(self._known.subject or self._pen.look(self._decision.subject))
        except NotSeen as unseen:
            followed = _followed(meaning_of(unseen.answer), unseen.answer)
            return WriteResult("refused", error_text(unseen.answer)) if followed is DONE else followed
        except Unreachable as fault:
            return Again(WriteResult("retry", str(fault)))

    def _attempt(self, found: Object | None) -> WriteResult | Again:
        """Raises Unreachable and NotSeen for reads; `found`: the subject."""
        coming = next_write(self._decision, found)
        if isinstance(coming, WriteResult):
            return coming
        if refused := self._occupied(found) or self._still_there():
            return refused
        if self._others:
            return self._sent_together(coming)
        if found is None or self._lending is None:
            return self._sent(coming)
        return self._lend(self._lending, found, coming)

    def _occupied(self, found: Object | None) -> WriteResult | None:
        """The result if a node must be empty, but the latest list of its pods is not. `found`: the node.

        The write token is acquired before, so that there is no wait between the list and the write.
        """
        subject = self._decision.subject
        if not self._is_to_be_empty or found is None:
            return None
        node: Node = one(_NODES, msgspec.json.encode(found))
        self._pen.await_token()
        pods = self._pen.pods_on(subject.name)
        now = Instant(int(1_000 * self._pen.limits.wall_clock()))
        return occupied(node, pods, self._presumes, now)

    def _lend(self, lending: LeaseBinding, pod: Object, binding: ApiRequest) -> WriteResult | Again:
        """Acquires the Leases first."""
        if why := lending.take(pod, self._known.node):
            return why
        self.lent_at = time.monotonic()
        return self._sent(binding)

    def _still_there(self) -> WriteResult | None:
        """The result if a pod must be gone, but a fresh read finds the pod."""
        gone = self._presumes.gone
        return not_gone(gone, self._pen.look(gone)) if gone is not None else None

    def _sent_together(self, last: ApiRequest) -> WriteResult | Again:
        """Evicts pods together or not at all: dry runs for all pods come first, and evictions only if all succeed.

        There are no transactions: once the first pod is evicted, the others are evicted whatever happens, since an
        incomplete gang is useless. The subject is evicted last: while it exists, not all evictions were sent.
        """
        requests = []
        for each in self._others:
            there = self._pen.look(each.ref)
            if there is not None and not leaves(each.ref, there):
                requests.append(eviction(each.ref, each.grace_seconds, {"uid": str(there["metadata"]["uid"])}))
            elif not self._has_begun:
                return no_longer_whole(each.ref)
        requests.append(last)
        for request in () if self._has_begun else requests:
            answer = self._pen.send(_dry(request))
            meaning = meaning_of(answer)
            if meaning is not Meaning.DONE:
                return _followed(meaning, answer)
        self._has_begun = True
        ended = [self._sent(each) for each in requests]
        return next((each for each in ended if each is not DONE), DONE)

    def _sent(self, request: ApiRequest) -> WriteResult | Again:
        try:
            answer = self._pen.send(request, has_turn=self._is_to_be_empty)
        except Unreachable as fault:
            self._in_doubt = True
            return Again(WriteResult("unknown", f"sent, but no response: {fault}"))
        meaning = meaning_of(answer)
        self._in_doubt |= meaning is Meaning.DOUBTFUL
        self.wrote |= meaning is Meaning.DONE
        if meaning is Meaning.DONE and request.path == path_of(self._decision.subject):
            self.uid = uid_in(answer)
        return _followed(meaning, answer)


def _followed(meaning: Meaning, answer: ApiResponse) -> WriteResult | Again:
    match meaning:
        case Meaning.DONE:
            return DONE
        case Meaning.REFUSED:
            return WriteResult("refused", error_text(answer))
        case Meaning.BLOCKED:
            return WriteResult("retry", error_text(answer))
        case Meaning.MOVED:
            # An object that was just seen is now missing: the API does not serve the kind.
            result = WriteResult("refused" if answer.status == 404 else "stale", error_text(answer))
            return Again(result, is_at_once=True)
    return Again(WriteResult("retry", error_text(answer)), answer.retry_after_seconds)
