"""All reason codes of drains, and sets of codes for other modules. The classes are in codes/."""

from reconciler.model.plan.decision import Facts
from reconciler.plan.drain.codes.blockers import BLOCKERS, ELIGIBILITY, GANG_CAUSES
from reconciler.plan.drain.codes.candidacy import (
    CANDIDACY,
    CANDIDATES,
    LIMITS,
    AwaitsBatch,
    AwaitsOthersOfGang,
    DrainCandidateNext,
    DrainedInVain,
    DrainWaitsForCompletion,
    NoDrainSlot,
    WindowClosed,
)
from reconciler.plan.drain.codes.emptying import (
    CAUSES,
    EMPTYING,
    BatchSettles,
    EmptiedNodeWaits,
    PodLeaves,
    PodSavesItsWork,
)

PLANNER = "drain"

# Reasons of nodes where no request is held back. Shown when a person asks about the node.
RESTING: frozenset[type[Facts]] = CANDIDATES | {
    DrainCandidateNext,
    EmptiedNodeWaits,
    PodLeaves,
    BatchSettles,
    PodSavesItsWork,
}

# Holds that are simulated in an observed pool: what candidates would wait for.
SUPPOSED: frozenset[type[Facts]] = CANDIDATES | {
    DrainCandidateNext, WindowClosed, DrainedInVain, DrainWaitsForCompletion, NoDrainSlot, AwaitsOthersOfGang,
    AwaitsBatch,
}  # fmt: skip

# Causes within other reasons. No decision has one of these codes.
NESTED = (*GANG_CAUSES, *LIMITS, *CAUSES)
REASONS = (*ELIGIBILITY, *BLOCKERS, *CANDIDACY, *EMPTYING, *NESTED)
