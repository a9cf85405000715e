"""A right: what may be done with which kinds, where, and why it is needed; and of what of an object.

RBAC grants verbs on whole objects. What a right needs of an object stands in its limits, which the admission policy of
the controller enforces.
"""

import msgspec

from reconciler.model.manifest_rules.shape import Fields, Path


class Changes(msgspec.Struct, frozen=True):
    """The fields of an object that may change; all others stay as they are. A key that ends in / stands for all keys
    that begin like it."""

    labels: tuple[str, ...] = ()
    kept_labels: tuple[str, ...] = ()  # of these, those that may not change
    annotations: tuple[str, ...] = ()
    taints: str = ""  # beginning of the keys of taints that may come and go, none of which evicts
    gates: str = ""  # beginning of the names of scheduling gates that may be taken off


class RightLimits(msgspec.Struct, frozen=True):
    """Which objects a right is for, and what of them; what is left out limits nothing."""

    sentence: str  # what may be done, for whoever is refused: "the controller may only ..."
    names: tuple[str, ...] = ()  # one that ends in - stands for all names that begin like it
    labels: tuple[tuple[str, str], ...] = ()  # all of them: before a write, and after it
    adopts: bool = False  # an object without these labels may be given them
    any_label: tuple[str, ...] = ()  # one of these keys, whatever the value, before a write
    fields: tuple[tuple[Path, str], ...] = ()  # values, before a write and after it
    made_as: Fields | None = None  # what an object that is made looks like
    keeps_as: Fields | None = None  # what an object looks like that is made or changed
    changes: Changes | None = None  # what may change of an object


class Right(msgspec.Struct, frozen=True):
    """One rule of a role."""

    group: str  # API group; nothing for Kubernetes' core
    resources: tuple[str, ...]  # plurals
    verbs: tuple[str, ...]
    why: str
    namespace: str = ""  # there only; else in the whole cluster
    names: tuple[str, ...] = ()  # these objects only; else all
    limits: RightLimits | None = None  # None: what RBAC says is all there is to say
