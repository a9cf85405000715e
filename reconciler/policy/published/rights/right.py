"""A right: what may be done with which kinds, where, and why it is needed."""

import msgspec


class Right(msgspec.Struct, frozen=True):
    """One rule of a role."""

    group: str  # API group; nothing for Kubernetes' core
    resources: tuple[str, ...]  # plurals
    verbs: tuple[str, ...]
    why: str
    namespace: str = ""  # there only; else in the whole cluster
    names: tuple[str, ...] = ()  # these objects only; else all
