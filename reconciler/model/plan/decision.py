"""A Decision: a subject, an Action or a Hold, and the Reason with its typed facts; the outcome of an action, and a
planner's Trouble.
"""

from typing import Any, ClassVar, Literal

import msgspec
from msgspec.structs import replace

from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import LONGEST_GRACE_SECONDS, Pod
from reconciler.model.instant import Instant
from reconciler.model.problem import Origin

# --- What the shell can do, one variant a verb, each with what it presumes; and a Hold, which is not doing it.


class Ref(msgspec.Struct, frozen=True, gc=False, order=True):
    """An object of the cluster."""

    kind: str
    namespace: str
    name: str
    uid: str = ""

    @property
    def title(self) -> str:
        """NodePool/a100, Pod/team-a/train-0."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class Preconditions(msgspec.Struct, frozen=True, gc=False):
    """What must still be so when the write arrives; the uid is in the subject."""

    absent: bool = False
    resource_version: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    untainted: tuple[str, ...] = ()  # of a Node: keys of taints, none of which is on it
    empty: bool = False  # of a Node: no pod that counts is bound to it, by a list that is as recent as can be
    # Of pods that stay Terminating on a node that is to be empty and is not ready: a longer grace is not believed.
    longest_grace_seconds: int = LONGEST_GRACE_SECONDS


class Act(msgspec.Struct, frozen=True, gc=False, tag_field="verb", tag=str.lower, kw_only=True):
    """One write."""

    presumes: Preconditions = Preconditions()


class Apply(Act, frozen=True, gc=False):
    """Server-side apply of a manifest."""

    manifest: str  # canonical JSON
    force: bool = False  # take fields from the manager that set them: only for what is or was adopted


class Delete(Act, frozen=True, gc=False):
    """Delete the subject."""


class Taint(Act, frozen=True, gc=False):
    """Put a taint on a node, or take it off."""

    key: str
    value: str | None  # None takes it off
    effect: str
    instead_of: str = ""  # the effect of a taint of the same key that goes in the same write
    labels: tuple[tuple[str, str], ...] = ()  # that the node gets in the same write


class Leaver(msgspec.Struct, frozen=True, gc=False, order=True):
    """A pod that leaves with another."""

    ref: Ref
    grace_seconds: int
    destination: str = ""  # as of Evict


class Evict(Act, frozen=True, gc=False):
    """Ask a pod to leave, by the eviction API; together with others, or none of them."""

    grace_seconds: int
    others: tuple[Leaver, ...] = ()  # asked in the same go, if dry runs say that all may leave
    destination: str = ""  # the node that was found to have room for the pod
    gang: str = ""  # namespace and name of the gang with which the pod leaves

    @property
    def api_request(self) -> "Evict":
        """What the API server is asked for, wherever the pods would go."""
        others = tuple([replace(each, destination="") for each in self.others])
        return replace(self, destination="", gang="", others=others)


class Resize(Act, frozen=True, gc=False):
    """Resize the first container of a pod in place: what it requests, and its limits where they are the same."""

    resources: tuple[tuple[str, int], ...]  # in thousandths, as Quantity.milli: cpu 500 is 500m


class Bind(Act, frozen=True, gc=False):
    """Bind a pod to a node, its leases with it."""

    node: str
    leases: tuple[str, ...]
    annotations: tuple[tuple[str, str], ...]


class Annotate(Act, frozen=True, gc=False):
    """Set annotations, or take them off: all in one write, since a plan has one action a subject."""

    annotations: tuple[tuple[str, str | None], ...]  # None takes it off


class Label(Act, frozen=True, gc=False):
    """Set labels, or take them off: all in one write, since a plan has one action a subject."""

    labels: tuple[tuple[str, str | None], ...]  # None takes it off


class Ungate(Act, frozen=True, gc=False):
    """Lift a scheduling gate of a pod."""

    gate: str
    node: str = ""  # that was found to have room for the pod


class Status(Act, frozen=True, gc=False):
    """Write the status of one of our objects."""

    body: str


class Hold(msgspec.Struct, frozen=True, gc=False, tag_field="verb", tag="hold"):
    """Not yet, and when to look again."""

    until: Instant | None = None


Action = Apply | Delete | Taint | Evict | Resize | Bind | Annotate | Label | Ungate | Status


# --- Why something is done, or is not: the typed facts of one code, and the line of policy that asked for it.
#
# Each planner declares its codes as classes of facts, with the template of their sentence (plan/*/reasons.py). A
# sentence is made where a person reads it (report/sentences.py), and is never read back.

HoldClass = Literal["blocked", "waiting"]


class Facts:
    """What any reason tells. A decoder is told by plan/reason_catalog.py which class a code has."""

    __slots__ = ()

    # Of the sentence: {field}, {field:time}, {field:minutes} for seconds, {field:noun} for a number and what it counts;
    # and what is said where there is none: {field:time|for ever}.
    template: ClassVar[str] = ""
    while_held: ClassVar[str] = ""  # of what a guard holds: without times that only come once a person lets it go
    hold: ClassVar[HoldClass] = "waiting"  # the class of a hold with these facts
    by_person: ClassVar[bool] = False  # a hold that is waiting lasts until a person acts

    @property
    def code(self) -> str:
        """The name of the class: part of every published format."""
        return type(self).__name__

    def fields(self) -> dict[str, Any]:
        """By name, as they are."""
        return {name: getattr(self, name) for name in self.__struct_fields__}  # type: ignore[attr-defined]


class CodeFacts(msgspec.Struct, Facts, frozen=True, gc=False, tag_field="code", tag=True, omit_defaults=True):
    """The base of each code: its fields are the facts, its name is the code."""


class Reason(msgspec.Struct, frozen=True, gc=False):
    """The facts of one code, and where they come from."""

    facts: Facts
    origin: Origin | None = None

    @property
    def code(self) -> str:
        return self.facts.code


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Holds are decisions too: they answer "why not?"."""

    planner: str
    subject: Ref
    act: Action | Hold
    reason: Reason
    pool: str = ""  # the GpuPool it is for; its mode and freeze hold for the decision
    would: bool = False  # the pool only observes: told, and never carried out
    after: tuple[Ref, ...] = ()
    about: tuple[Ref, ...] = ()  # on which an action is told as well: of a node, its NodeClaim and its pool

    @property
    def refs(self) -> tuple[Ref, ...]:
        """Its subject, and those that leave with it."""
        others = self.act.others if isinstance(self.act, Evict) else ()
        return (self.subject, *(each.ref for each in others))


# --- What came of one action: whether it took effect, and if not, whether to try again.

Result = Literal[
    "done",  # it took effect, or had before
    "stale",  # what it presumes is no longer so: the next plan looks again
    "refused",  # the API server will not have it, now or later, as things stand
    "retry",  # not now: a budget, a rate limit, an API server in trouble
    "unknown",  # it was sent, and no answer came: it may have taken effect
]


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """Of one decision."""

    subject: Ref
    verb: str  # the tag of its action
    result: Result
    detail: str = ""  # a sentence, where it is not done


# --- A planner that raised while a plan was made: a fault of ours, contained to a pool or to the planner.


class PlannerFailure(msgspec.Struct, frozen=True, gc=False, order=True):
    """One exception."""

    planner: str
    pool: str  # the pool that was planned for; nothing where that is not known, and the planner stands still
    error: str  # type and text
    trace: tuple[str, ...] = ()  # places in our code, outermost first: plan/scaling/planner.py:42


# --- References to nodes and pods that were observed.


def node_ref(node: Node) -> Ref:
    return Ref("Node", "", node.name, node.metadata.uid)


def pod_ref(pod: Pod) -> Ref:
    return Ref("Pod", pod.metadata.namespace, pod.name, pod.metadata.uid)


# --- What keeps a pod off a node: typed facts of one case, which reconciler/fleet/obstacles.py declares.


class Obstacle:
    """Any of them. Which class a stored one has, plan/reason_catalog.py tells a decoder."""

    __slots__ = ()

    template: ClassVar[str] = ""  # of its words; plan/capacity/words.py fills it in


def order_of(obstacle: Obstacle) -> tuple[Any, ...]:
    """By case and facts: the same whichever was found first."""
    template = obstacle.template
    return "" if template.startswith("{") else template, template, repr(obstacle)
