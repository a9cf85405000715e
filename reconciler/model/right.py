"""A right: allowed verbs on kinds and namespaces, why it is needed, and which parts of objects it covers.

RBAC grants verbs on whole objects. The limits of a right restrict it to parts of objects; the admission policy of the
controller enforces them.
"""

import msgspec

from reconciler.model.manifest_rules import Fields, Path


class Changes(msgspec.Struct, frozen=True):
    """The fields of an object that may change; all others must stay unchanged. A key that ends in / is a prefix."""

    labels: tuple[str, ...] = ()
    kept_labels: tuple[str, ...] = ()  # labels among these that may not change
    annotations: tuple[str, ...] = ()
    taints: str = ""  # key prefix of taints that may be added or removed, none with effect NoExecute
    gates: str = ""  # name prefix of scheduling gates that may be removed


class RightLimits(msgspec.Struct, frozen=True):
    """The objects and fields that a right covers; an absent limit does not apply."""

    sentence: str  # the allowed operation, for the error message: "the controller may only ..."
    names: tuple[str, ...] = ()  # a name that ends in - is a prefix
    labels: tuple[tuple[str, str], ...] = ()  # all labels required: before and after a write
    adopts: bool = False  # may be added to an object without these labels
    any_label: tuple[str, ...] = ()  # one of these keys is required before a write, with any value
    annotation: str = ""  # this key is required before a write, with any value
    fields: tuple[tuple[Path, str], ...] = ()  # required values before and after a write
    made_as: Fields | None = None  # the required form of a created object
    keeps_as: Fields | None = None  # the required form of a created or changed object
    changes: Changes | None = None  # allowed changes of an object


class Right(msgspec.Struct, frozen=True):
    """One rule of a role."""

    group: str  # API group; empty for the core group
    resources: tuple[str, ...]  # plurals
    verbs: tuple[str, ...]
    why: str
    namespace: str = ""  # only in this namespace; otherwise cluster-wide
    names: tuple[str, ...] = ()  # only these objects; otherwise all
    limits: RightLimits | None = None  # None: RBAC alone limits the right
