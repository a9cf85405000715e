"""A Decision: a subject, what is done to it or why nothing is, and the reason."""

import msgspec

from reconciler.model.plan.action import Action, Evict, Hold, Ref
from reconciler.model.plan.reason import Reason


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
