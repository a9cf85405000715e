"""Why: a code from a closed set, the facts behind it, and the line of policy that asked for it."""

import msgspec

from reconciler.model.origin import Origin


class Reason(msgspec.Struct, frozen=True, gc=False):
    """The sentence stands beside the code, in the reasons of the planner; the facts fill it."""

    code: str
    facts: tuple[tuple[str, str | int], ...] = ()
    origin: Origin | None = None

    def fact(self, name: str) -> str | int | None:
        return dict(self.facts).get(name)
