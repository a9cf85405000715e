"""What the shell can do, one variant a verb, each with what it presumes; and a Hold, which is not doing it."""

import msgspec
from msgspec.structs import replace

from reconciler.model.cluster.stuck_pods import LONGEST_GRACE_SECONDS
from reconciler.model.instant import Instant


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
