"""One decision on its way: looked at, sent, and looked at again until it is settled or patience ends.

Each try begins with a look at the object, so that nothing is written twice: what a broken connection left open is found
out by looking. Where it never is, the outcome is `unknown`.
"""

import random

import msgspec

from reconciler.kube.api_server import ApiRequest, ApiResponse, Unreachable
from reconciler.kube.apply.fenced_writer import FencedWriter, FenceFell, NotSeen
from reconciler.kube.apply.group_eviction import GroupEviction
from reconciler.kube.apply.lease_binding import LeaseBinding
from reconciler.kube.apply.resource_paths import path_of
from reconciler.kube.apply.responses import Meaning, error_text, meaning_of, uid_in
from reconciler.kube.apply.verbs import next_write
from reconciler.kube.backoff import Backoff, BackoffBounds
from reconciler.kube.decode import Undecodable, one
from reconciler.kube.paths import BadPath
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant
from reconciler.model.plan.action import Bind, Evict, Hold, Preconditions
from reconciler.model.plan.decision import Decision
from reconciler.protocol.emptiness import occupied
from reconciler.protocol.preconditions import DONE, NO_LONGER_OURS, Object, WriteResult

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
