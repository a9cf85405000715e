"""What keeps a saved plan from being applied: what is no longer as the plan was saved."""

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.action import Ref
from reconciler.model.plan.reason import Reason


class OtherCluster(msgspec.Struct, frozen=True):
    """The plan is for another cluster."""

    saved: str  # uid; empty: not known
    found: str


class Expired(msgspec.Struct, frozen=True):
    """The plan was to be applied earlier."""

    at: Instant


class UnreadNow(msgspec.Struct, frozen=True):
    """Objects of a kind could not be read."""

    kind: str
    why: str


class NothingToDo(msgspec.Struct, frozen=True):
    """Nothing is decided about the subject any more."""

    subject: Ref


class OtherObject(msgspec.Struct, frozen=True):
    """An object with another uid has the name of the subject."""

    subject: Ref


class HeldNow(msgspec.Struct, frozen=True):
    """The action is held."""

    subject: Ref
    reason: Reason


class OtherAction(msgspec.Struct, frozen=True):
    """Another action is decided."""

    subject: Ref
    reason: Reason


class OtherFields(msgspec.Struct, frozen=True):
    """The subject differs in other fields from what the policies ask for."""

    subject: Ref
    before: tuple[str, ...]
    now: tuple[str, ...]


class TakesMore(msgspec.Struct, frozen=True):
    """The action takes away more nodes."""

    subject: Ref
    nodes: tuple[str, ...]


class BusierNow(msgspec.Struct, frozen=True):
    """More is in use on nodes that the action takes away."""

    subject: Ref
    nodes: tuple[str, ...]


Difference = (
    OtherCluster
    | Expired
    | UnreadNow
    | NothingToDo
    | OtherObject
    | HeldNow
    | OtherAction
    | OtherFields
    | TakesMore
    | BusierNow
)
