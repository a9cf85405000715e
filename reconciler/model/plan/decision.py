"""A Decision: a subject, an Action or a Hold, and a Reason with typed facts. Also Outcome and PlannerFailure."""

from typing import Any, ClassVar, Literal

import msgspec
from msgspec.structs import replace

from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import LONGEST_GRACE_SECONDS, Pod
from reconciler.model.instant import Instant
from reconciler.model.problem import Origin

# --- Actions, one class per verb, each with its preconditions; and Hold, the decision not to act.


class Ref(msgspec.Struct, frozen=True, gc=False, order=True):
    """A reference to an object of the cluster."""

    kind: str
    namespace: str
    name: str
    uid: str = ""

    @property
    def title(self) -> str:
        """NodePool/a100, Pod/team-a/train-0."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class Preconditions(msgspec.Struct, frozen=True, gc=False):
    """What must still hold when the write is sent; the uid is in the subject."""

    absent: bool = False
    resource_version: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    untainted: tuple[str, ...] = ()  # of a Node: keys of taints that must be absent
    empty: bool = False  # of a Node: no workload pod is bound to it, by a list as recent as possible
    gone: Ref | None = None  # a pod that a fresh read must not find, or must find finished
    # For pods stuck in Terminating on an unready node that must be empty: longer grace periods are capped.
    longest_grace_seconds: int = LONGEST_GRACE_SECONDS


class Act(msgspec.Struct, frozen=True, gc=False, tag_field="verb", tag=str.lower, kw_only=True):
    """One write."""

    presumes: Preconditions = Preconditions()


class Apply(Act, frozen=True, gc=False):
    """Server-side apply of a manifest."""

    manifest: str  # canonical JSON
    force: bool = False  # take over fields of other field managers: only for adopted objects


class Delete(Act, frozen=True, gc=False):
    """Deletes the subject."""


class Taint(Act, frozen=True, gc=False):
    """Adds a taint to a node, or removes it."""

    key: str
    value: str | None  # None removes the taint
    effect: str
    instead_of: str = ""  # effect of a taint with the same key that is removed in the same write
    labels: tuple[tuple[str, str], ...] = ()  # labels set on the node in the same write


class Leaver(msgspec.Struct, frozen=True, gc=False, order=True):
    """A pod that is evicted together with another."""

    ref: Ref
    grace_seconds: int
    destination: str = ""  # as in Evict


class Evict(Act, frozen=True, gc=False):
    """Evicts a pod through the eviction API, together with others or not at all."""

    grace_seconds: int
    others: tuple[Leaver, ...] = ()  # evicted together, if dry runs succeed for all
    destination: str = ""  # the node where the pod was found to fit
    gang: str = ""  # namespace and name of the gang with which the pod is evicted

    @property
    def api_request(self) -> "Evict":
        """The action as sent to the API server, without destinations."""
        others = tuple([replace(each, destination="") for each in self.others])
        return replace(self, destination="", gang="", others=others)


class Resize(Act, frozen=True, gc=False):
    """Resizes the first container of a pod in place: its requests, and its limits if they equal the requests."""

    resources: tuple[tuple[str, int], ...]  # in thousandths, as in Quantity.milli: cpu 500 is 500m


class LentDevice(msgspec.Struct, frozen=True, gc=False, order=True):
    """A Lease that lends one GPU of a node to a pod."""

    name: str
    device: int  # index of the GPU on its node
    uuid: str = ""  # empty if unknown


class Bind(Act, frozen=True, gc=False):
    """Binds a pod to a node, together with the Leases of its GPUs."""

    node: str
    leases: tuple[LentDevice, ...]
    annotations: tuple[tuple[str, str], ...]


class Annotate(Act, frozen=True, gc=False):
    """Sets or removes annotations, in a single write, since a plan has one action per subject."""

    annotations: tuple[tuple[str, str | None], ...]  # None removes the annotation


class Label(Act, frozen=True, gc=False):
    """Sets or removes labels, in a single write, since a plan has one action per subject."""

    labels: tuple[tuple[str, str | None], ...]  # None removes the label


class Ungate(Act, frozen=True, gc=False):
    """Removes a scheduling gate from a pod."""

    gate: str
    node: str = ""  # the node where the pod was found to fit


class Status(Act, frozen=True, gc=False):
    """Writes the status of one of reconciler's objects."""

    body: str


class Hold(msgspec.Struct, frozen=True, gc=False, tag_field="verb", tag="hold"):
    """No action for now, and when to evaluate again."""

    until: Instant | None = None


Action = Apply | Delete | Taint | Evict | Resize | Bind | Annotate | Label | Ungate | Status


# --- Reasons: the typed facts of a code, and the policy line that caused the decision.
#
# Each planner declares its codes as classes of facts with a message template (plan/*/reasons.py). Messages are
# formatted only for display (report/sentences.py) and never parsed.

HoldClass = Literal["blocked", "waiting"]


class Facts:
    """Base class of all facts. Decoders find the class of a code in plan/reason_catalog.py."""

    __slots__ = ()

    # Message template. Placeholders: {field}, {field:time}, {field:minutes} for seconds, {field:noun} for a number with
    # its noun, and {field:time|for ever} with a text for an absent value.
    template: ClassVar[str] = ""
    while_held: ClassVar[str] = ""  # template for a guarded decision: without times that are only known after approval
    hold: ClassVar[HoldClass] = "waiting"  # the class of a Hold for this reason: blocked or waiting
    by_person: ClassVar[bool] = False  # a waiting hold that lasts until a person acts

    @property
    def code(self) -> str:
        """The name of the class; part of every published format."""
        return type(self).__name__

    def fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__struct_fields__}  # type: ignore[attr-defined]


class CodeFacts(msgspec.Struct, Facts, frozen=True, gc=False, tag_field="code", tag=True, omit_defaults=True):
    """Base of each code: the fields are the facts, the class name is the code. A base class of several codes is no code
    itself.
    """


class Reason(msgspec.Struct, frozen=True, gc=False):
    """The facts of one code, and the policy lines that caused the decision."""

    facts: Facts
    origin: Origin | None = None

    @property
    def code(self) -> str:
        return self.facts.code


class Decision(msgspec.Struct, frozen=True, gc=False):
    """A decision about a subject. Holds are decisions too: they explain why nothing is done."""

    planner: str
    subject: Ref
    act: Action | Hold
    reason: Reason
    pool: str = ""  # the GpuPool; its mode and freeze apply to the decision
    would: bool = False  # the pool is in Observe mode: reported, never executed
    after: tuple[Ref, ...] = ()
    about: tuple[Ref, ...] = ()  # further objects that the action is reported for: of a node, its NodeClaim and pool

    @property
    def refs(self) -> tuple[Ref, ...]:
        """The subject, and all pods that are evicted with it."""
        others = self.act.others if isinstance(self.act, Evict) else ()
        return (self.subject, *(each.ref for each in others))


# --- The outcome of an action: whether it took effect, and whether to retry.

Result = Literal[
    "done",  # took effect now or before
    "stale",  # a precondition no longer holds: the next plan evaluates again
    "refused",  # the API server rejects the write permanently, given the current state
    "retry",  # temporarily refused: a budget, a rate limit, API server trouble
    "unknown",  # sent without a response: may have taken effect
]


class Outcome(msgspec.Struct, frozen=True, gc=False):
    subject: Ref
    verb: str  # the tag of the action
    result: Result
    detail: str = ""  # a sentence if the action was not done


# --- PlannerFailure: an exception of a planner, a bug of reconciler. Its effect is limited to a pool or to the planner.


class PlannerFailure(msgspec.Struct, frozen=True, gc=False, order=True):
    """One exception."""

    planner: str
    pool: str  # the planned pool; empty if unknown: then the planner stops
    error: str  # type and message
    trace: tuple[str, ...] = ()  # code locations, outermost first: plan/scaling/planner.py:42


# --- References to observed nodes and pods.


def node_ref(node: Node) -> Ref:
    return Ref("Node", "", node.name, node.metadata.uid)


def pod_ref(pod: Pod) -> Ref:
    return Ref("Pod", pod.metadata.namespace, pod.name, pod.metadata.uid)


# --- Obstacles that keep a pod off a node: typed facts, declared in reconciler/fleet/obstacles.py.


class Obstacle:
    """Base class of all obstacles. Decoders find the class in plan/reason_catalog.py."""

    __slots__ = ()

    template: ClassVar[str] = ""  # message template; filled in by plan/capacity/words.py


def order_of(obstacle: Obstacle) -> tuple[Any, ...]:
    """Sort key by class and facts, independent of the order of discovery."""
    template = obstacle.template
    return "" if template.startswith("{") else template, template, repr(obstacle)
