"""All codes of drains, and the sets of them that others go by; the classes are in codes/."""

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

# Of nodes, by which nothing is held that was asked for: they are told where a node is asked about.
RESTING: frozenset[type[Facts]] = CANDIDATES | {
    DrainCandidateNext,
    EmptiedNodeWaits,
    PodLeaves,
    BatchSettles,
    PodSavesItsWork,
}

# Holds that would be, in a pool that is only observed: what candidates wait for.
SUPPOSED: frozenset[type[Facts]] = CANDIDATES | {
    DrainCandidateNext, WindowClosed, DrainedInVain, DrainWaitsForCompletion, NoDrainSlot, AwaitsOthersOfGang,
    AwaitsBatch,
}  # fmt: skip

# What reasons give as their cause: no decision has one of these.
NESTED = (*GANG_CAUSES, *LIMITS, *CAUSES)
REASONS = (*ELIGIBILITY, *BLOCKERS, *CANDIDACY, *EMPTYING, *NESTED)
