"""What came of pods that wait for capacity on an imagined cluster: what was asked for them, and what is left."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Action, Annotate, Apply, Decision, Delete, Hold, Taint, Ungate
from reconciler.model.plan.inputs import CycleResult
from reconciler.model.plan.memory import Memory
from reconciler.plan.capacity.requests import CapacityRequest, is_labelled_as_smart
from reconciler.report.simulation.simulated import Simulated
from reconciler.simulate.runner.play import Play
from reconciler.simulate.runner.run import RunOptions, run
from tests.stages.stories.smart import Story

SMART = "smart-gpu-scheduler-"
_VERBS = {Apply: "ask", Delete: "delete", Annotate: "note", Ungate: "lift", Taint: "open"}


class Did(msgspec.Struct, frozen=True):
    """A write of the planner that took effect."""

    at: Instant
    verb: str
    subject: str
    reason: str
    request: CapacityRequest | None = None  # of a smart pod that was made


class Waited(msgspec.Struct, frozen=True):
    """A play, what was done in it for those who wait, and what is left."""

    play: Play
    simulated: Simulated
    did: tuple[Did, ...]
    said: frozenset[str]  # the codes of all reasons, holds among them
    observed: Observed  # at the last cycle
    memory: Memory  # likewise
    machines_touched: tuple[str, ...]  # NodeClaims that we wrote to

    @property
    def asked(self) -> list[CapacityRequest]:
        """What smart pods were made for, in turn."""
        return [each.request for each in self.did if each.request is not None]

    @property
    def smart_pods(self) -> list[Pod]:
        """Those that are left."""
        return [each for each in self.observed.pods if is_labelled_as_smart(each)]

    @property
    def bound(self) -> list[Pod]:
        """Pods of others that have a node."""
        return [each for each in self.observed.pods if each.node and not is_labelled_as_smart(each)]

    @property
    def waiting(self) -> list[Pod]:
        others = (each for each in self.observed.pods if not is_labelled_as_smart(each))
        return [each for each in others if not (each.node or each.is_finished)]

    @property
    def sorts(self) -> Counter[str]:
        """Instance types and capacity types of the nodes that there are."""
        labels = (each.metadata.labels for each in self.observed.nodes)
        return Counter(f"{each[names.INSTANCE_TYPE]} {each[names.CAPACITY_TYPE]}" for each in labels)

    def when(self, minutes: float) -> Instant:
        return Instant(self.play.start + int(60_000 * minutes))

    def reasons(self, verb: str) -> Counter[str]:
        """Why something was done, and how often."""
        return Counter(each.reason for each in self.did if each.verb == verb)


class _Listener:
    """A Publisher."""

    def __init__(self) -> None:
        self.did: list[Did] = []
        self.said: set[str] = set()
        self.touched: list[str] = []
        self.observed = Observed(cluster_uid="")
        self.memory = Memory()

    def publish(self, cycled: CycleResult) -> None:
        if cycled.plan is None or cycled.inputs is None:
            return
        self.observed, self.memory = cycled.inputs.observed, cycled.plan.memory
        done = {each.subject for each in cycled.outcomes if each.result == "done"}
        self.said.update(each.reason.code for each in cycled.plan.decisions)
        for each in cycled.plan.decisions:
            if isinstance(each.act, Hold) or each.would:
                continue
            if each.subject.kind == "NodeClaim":
                self.touched.append(each.subject.title)
            if each.planner == "smart_pods" and each.subject in done:
                self.did.append(_did(cycled.at, each, each.act))


def _did(at: Instant, decision: Decision, act: Action) -> Did:
    request = _request_in(act) if isinstance(act, Apply) else None
    return Did(at, _VERBS[type(act)], decision.subject.title, decision.reason.code, request)


def _request_in(act: Apply) -> CapacityRequest:
    annotations = msgspec.json.decode(act.manifest)["metadata"]["annotations"]
    return msgspec.json.decode(annotations[names.ORIGINAL_REQUEST], type=CapacityRequest)


def waited(play: Play) -> Waited:
    """Plays it."""
    listener = _Listener()
    simulated = run(play, RunOptions(publishers=(listener,)))
    return Waited(
        play,
        simulated,
        tuple(listener.did),
        frozenset(listener.said),
        listener.observed,
        listener.memory,
        tuple(listener.touched),
    )


def faults_of(found: Waited) -> list[str]:
    """What may never be, whatever comes, in sentences."""
    return [told for _, told in _faults(found)]


def broken_promises(story: Story, found: Waited) -> list[str]:
    """What a drawn story must come to, and does not, in sentences."""
    return [told for _, told in (*_faults(found), *_waiting(found), *_bought(story, found))]


def ways(found: Waited) -> frozenset[str]:
    """In which it fails, of those that hang on no figure: a smaller story fails with others."""
    return frozenset(way for way, _ in (*_faults(found), *_waiting(found)))


def _faults(found: Waited) -> Iterator[tuple[str, str]]:
    yield from ((each.rule, f"{each.rule}: {each.sentence}") for each in found.simulated.broken)
    yield from (("trouble", each) for each in found.simulated.troubles)
    yield from (("machines", f"{each} was written to by us") for each in found.machines_touched)
    yield from (("left over", f"{each.title} is left over") for each in found.smart_pods)


def _waiting(found: Waited) -> Iterator[tuple[str, str]]:
    yield from (("waiting", f"{each.title} waits in the end") for each in found.waiting)


def _bought(story: Story, found: Waited) -> Iterator[tuple[str, str]]:
    """Without faults exactly as many as needed, but for what is wanted twice in one moment."""
    bought, needed = found.simulated.sums.nodes_bought, story.needed
    if needed is None:
        return
    if bought > needed + story.spare:
        yield "too many", f"{bought} machines were bought, {needed} are needed, and {story.spare} may be more"
    if story.is_calm and bought < needed:
        yield "too few", f"{bought} machines were bought, and {needed} are needed"
