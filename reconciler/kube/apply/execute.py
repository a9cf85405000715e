"""One decision on its way: looked at, sent, and looked at again until it is settled or patience ends.

Each try begins with a look at the object, so that nothing is written twice: what a broken connection left open is found
out by looking. Where it never is, the outcome is `unknown`.
"""

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import msgspec

from reconciler.kube.api_server import ApiRequest, ApiResponse, Backoff, BackoffBounds, BadPath, Unreachable, Writer
from reconciler.kube.apply.events import EventNote, Events, event_notes, is_reported, pool_event_notes
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
from reconciler.kube.apply.verbs import eviction, folder_of, kind_of, next_write, path_of
from reconciler.kube.decode import Undecodable, one
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Bind, Decision, Evict, Hold, Outcome, Preconditions, Ref
from reconciler.ports import Fence
from reconciler.protocol.preconditions import (
    DONE,
    HELD,
    NO_LONGER_OURS,
    Object,
    WriteResult,
    lease,
    leaves,
    lent_to_another,
    no_longer_whole,
    occupied,
    text_at,
)
from reconciler.protocol.write_order import WriteOrder, verb_of

__all__ = ["Executor", "WriteLimits"]


# --- Carries out decisions on a real cluster. Owner of the threads that write, while a plan is carried out.
#
# Threads, because a write takes the API server some milliseconds and a plan may have thousands. One that fails stops no
# other but those that come after it.


class Executor:
    """One identity that writes to one cluster; `namespace` is where what is lent is noted."""

    def __init__(
        self, server: Writer, namespace: str = names.LEASES_NAMESPACE, limits: WriteLimits | None = None
    ) -> None:
        limits = limits or WriteLimits()
        self._server, self._namespace, self._limits = server, namespace, limits
        self._bucket = Bucket(limits.writes_per_second, limits.burst)
        self._events = Events(server, limits.events_per_second, limits.burst_of_events)

    def apply(self, decisions: Sequence[Decision], fence: Fence) -> Iterator[Outcome]:
        """All that are neither holds nor `would`; one outcome each, as they come. Nothing is sent before it is walked,
        and what has not begun when walking stops never begins."""
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
                self._events.tell(note)
        yield from turns.left()

    def tell(self, note: EventNote) -> None:
        """An Event that no write goes with. Never raises, and never waits for its turn."""
        self._events.tell(note)

    def _carried_out(self, decision: Decision, pen: FencedWriter, written: list[Decision]) -> Outcome:
        """What was written is added to `written`."""
        try:
            carried = WriteExecution(decision, pen, self._namespace).carry_out()
        except Exception as fault:  # noqa: BLE001 - what one object brings out must not stop the others
            text = f"it broke off, by a fault of reconciler or of what answers: {type(fault).__name__}: {fault}"
            return Outcome(decision.subject, verb_of(decision), "unknown", text)
        if carried.wrote and is_reported(decision) and pen.may_write:
            written.append(decision)
            for each in event_notes(decision, carried.uid):
                self._events.tell(each)
        settled = carried.settled
        return Outcome(decision.subject, verb_of(decision), settled.result, settled.detail)


# --- Leases that go with a Binding. Owner of which were taken for one pod, so that they can be given back.


class LeaseBinding:
    """Taken in sorted order, so that two who want the same never hold half each for long."""

    def __init__(self, act: Bind, namespace: str, pen: FencedWriter) -> None:
        self._act, self._namespace, self._pen = act, namespace, pen
        self._holder = ""
        self._taken: list[Ref] = []

    def take(self, pod: Object) -> WriteResult | None:
        """Why it can't be had; None where all are held by the pod. Raises Unreachable, NotSeen and FenceFell."""
        self._holder = pod["metadata"]["uid"]
        node = self._pen.look(Ref("Node", "", self._act.node))
        if node is None:
            return WriteResult("stale", f"Node/{self._act.node} is not there any more")
        for name in sorted(self._act.leases):
            ref = Ref("Lease", self._namespace, name)
            if why := self._take(ref, lease(name, self._namespace, pod, node)):
                return why
        return None

    def give_back(self) -> None:
        """Those that were taken here. Raises Unreachable, NotSeen and FenceFell."""
        while self._taken:
            ref = self._taken.pop()
            found = self._pen.look(ref)
            if found is not None and text_at(found, HELD) == self._holder:
                preconditions = {
                    "uid": found["metadata"]["uid"],
                    "resourceVersion": found["metadata"]["resourceVersion"],
                }
                options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}
                self._pen.send(ApiRequest("DELETE", path_of(ref), msgspec.json.encode(options)))

    def _take(self, ref: Ref, manifest: Object) -> WriteResult | None:
        found = self._pen.look(ref)
        if found is None:
            # An answer that is lost on the way leaves it taken: so it is noted first.
            self._taken.append(ref)
            body = msgspec.json.encode(manifest)
            answer = self._pen.send(ApiRequest("POST", folder_of(kind_of(ref), ref.namespace), body))
            if answer.status < 300:
                return None
            if answer.status != 409:
                return WriteResult("retry" if answer.status >= 429 else "refused", error_text(answer))
            found = self._pen.look(ref) or {}
        holder = text_at(found, HELD)
        return None if holder == self._holder else WriteResult("stale", lent_to_another(ref.title, holder))


# --- Pods that leave together or not at all: all are asked by dry runs first, and in earnest only if all of them may
# go.
#
# There are no transactions: once the first was asked in earnest the others are asked whatever comes of it, since what
# is left of a gang is of no use to anybody. The pod that the decision is about goes last: while it is there, not all
# have been asked.


class GroupEviction:
    """Owner of whether any of them was asked in earnest."""

    def __init__(self, act: Evict, pen: FencedWriter) -> None:
        self._others, self._pen = act.others, pen
        self._has_begun = False

    def requests(self) -> WriteResult | tuple[ApiRequest, ...]:
        """How the others are asked that are there; or how it ends where one left before any was asked. Raises
        Unreachable, NotSeen and FenceFell."""
        api_requests = []
        for each in self._others:
            there = self._pen.look(each.ref)
            if there is None or leaves(each.ref, there):
                if not self._has_begun:
                    return no_longer_whole(each.ref)
                continue
            api_requests.append(eviction(each.ref, each.grace_seconds, {"uid": str(there["metadata"]["uid"])}))
        return tuple(api_requests)

    def answers(self, requests: tuple[ApiRequest, ...]) -> Iterator[ApiResponse]:
        """What is said to dry runs of all. Raises Unreachable and FenceFell."""
        for each in () if self._has_begun else requests:
            yield self._pen.send(_dry(each))
        self._has_begun = True


def _dry(request: ApiRequest) -> ApiRequest:
    body = msgspec.json.decode(request.body)
    body["deleteOptions"]["dryRun"] = ["All"]
    return msgspec.structs.replace(request, body=msgspec.json.encode(body, order="sorted"))


_NODES = next(each for each in RESOURCE_KINDS if each.field == "nodes")
_WAITS = BackoffBounds(first_seconds=0.2, most_seconds=5.0)


class Again(msgspec.Struct, frozen=True):
    """It may be tried again, after a while; otherwise that is how it ends."""

    otherwise: WriteResult
    wait_seconds: float = 0.0
    is_at_once: bool = False


class Carried(msgspec.Struct, frozen=True):
    """How it ended, and whether something was written for it."""

    settled: WriteResult
    wrote: bool = False
    uid: str = ""  # of the object, as the API server answered a write


class WriteExecution:
    """Owner of what is known of one decision that is being carried out."""

    def __init__(self, decision: Decision, pen: FencedWriter, namespace: str) -> None:
        self._decision, self._pen = decision, pen
        act = decision.act
        self._lending = LeaseBinding(act, namespace, pen) if isinstance(act, Bind) else None
        self._company = GroupEviction(act, pen) if isinstance(act, Evict) and act.others else None
        self._presumes = Preconditions() if isinstance(act, Hold) else act.presumes
        self._is_to_be_empty = self._presumes.empty
        self._wrote = False
        self._uid = ""
        self._in_doubt = False  # something was sent, and what became of it was not told

    def carry_out(self) -> Carried:
        """Never raises for what the API server says or leaves unsaid."""
        try:
            settled = self._tried()
        except FenceFell:
            settled = WriteResult("unknown", NO_LONGER_OURS.detail) if self._in_doubt else NO_LONGER_OURS
        except (BadPath, Undecodable) as fault:
            settled = WriteResult("refused", str(fault))
        return Carried(settled, self._wrote or (self._in_doubt and settled.result == "done"), self._uid)

    def _tried(self) -> WriteResult:
        backoff = Backoff(_WAITS, random.Random())  # noqa: S311 - of no secret
        otherwise = WriteResult("retry")
        limits = self._pen.limits
        was_quiet = True  # a second conflict in a row tells of somebody busy: not to be raced
        ends = limits.clock() + limits.patience_seconds
        for left in reversed(range(limits.attempts)):
            step = self._step()
            if isinstance(step, WriteResult):
                return step
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
            found = self._pen.look(self._decision.subject)
        except NotSeen as unseen:
            return _unseen(unseen.answer)
        except Unreachable as fault:
            return Again(WriteResult("retry", str(fault)))
        coming = next_write(self._decision, found)
        if isinstance(coming, WriteResult):
            return coming
        if occupied := self._occupied(found):
            return occupied
        if self._company is not None:
            return self._sent_together(self._company, coming)
        if found is None or self._lending is None:
            return self._sent(coming)
        return self._lend(self._lending, found, coming)

    def _occupied(self, found: Object | None) -> WriteResult | Again | None:
        """How it ends where a node was to be empty, and is not by the most recent list of its pods. `found`: the node.

        The turn to write is taken before: between the list and the write nothing is waited for."""
        subject = self._decision.subject
        if not self._is_to_be_empty or found is None:
            return None
        try:
            node: Node = one(_NODES, msgspec.json.encode(found))
            self._pen.await_token()
            pods = self._pen.pods_on(subject.name)
            now = Instant(int(1_000 * self._pen.limits.wall_clock()))
            return occupied(node, pods, self._presumes, now)
        except NotSeen as unseen:
            return _unseen(unseen.answer)
        except Unreachable as fault:
            return Again(WriteResult("retry", str(fault)))

    def _lend(self, lending: LeaseBinding, pod: Object, binding: ApiRequest) -> WriteResult | Again:
        """What is lent is taken first; where the Binding definitely failed, it is given back."""
        try:
            step = lending.take(pod) or self._sent(binding)
            if isinstance(step, WriteResult) and step.result != "done" and not self._in_doubt:
                lending.give_back()
        except NotSeen as unseen:
            return _unseen(unseen.answer)
        except Unreachable as fault:
            return Again(WriteResult("retry", str(fault)))
        return step

    def _sent_together(self, company: GroupEviction, last: ApiRequest) -> WriteResult | Again:
        """Nothing in earnest unless all may go; then all of them, whatever comes of one."""
        try:
            others = company.requests()
            if isinstance(others, WriteResult):
                return others
            for answer in company.answers((*others, last)):
                meaning = meaning_of(answer)
                if meaning is not Meaning.DONE:
                    return _followed(meaning, answer)
        except NotSeen as unseen:
            return _unseen(unseen.answer)
        except Unreachable as fault:
            return Again(WriteResult("retry", str(fault)))
        ended = [self._sent(each) for each in (*others, last)]
        return next((each for each in ended if each is not DONE), DONE)

    def _sent(self, request: ApiRequest) -> WriteResult | Again:
        try:
            answer = self._pen.send(request, has_turn=self._is_to_be_empty)
        except Unreachable as fault:
            self._in_doubt = True
            return Again(WriteResult("unknown", f"it was sent, and no answer came: {fault}"))
        meaning = meaning_of(answer)
        self._in_doubt |= meaning is Meaning.DOUBTFUL
        self._wrote |= meaning is Meaning.DONE
        if meaning is Meaning.DONE and request.path == path_of(self._decision.subject):
            self._uid = uid_in(answer)
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
            # What is still not found when it was seen a moment ago is not served at all.
            result = WriteResult("refused" if answer.status == 404 else "stale", error_text(answer))
            return Again(result, is_at_once=True)
    return Again(WriteResult("retry", error_text(answer)), answer.retry_after_seconds)


def _unseen(answer: ApiResponse) -> WriteResult | Again:
    followed = _followed(meaning_of(answer), answer)
    return WriteResult("refused", error_text(answer)) if followed is DONE else followed
