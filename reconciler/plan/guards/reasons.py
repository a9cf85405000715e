"""Why a guard holds something back."""

from reconciler.plan.reasons import Because

WRONG_CLUSTER = Because(
    "WrongCluster",
    "{guard} is for cluster {wanted}, and this is {found}: nothing is done here to what it guards.",
    hold="blocked",
)
OVER_PLAN = Because(
    "OverPlanLimit",
    "{guard} allows less in one plan ({sums}). Held until the plan takes less, or is approved: {asked}",
    hold="blocked",
)
OVER_HOUR = Because(
    "HourIsFull",
    "{guard} allows less in any hour ({sums}). Held until there is room, or it is approved: {asked}",
    hold="blocked",
)
OVER_HOUR_ALONE = Because(
    "OverHourLimit",
    "{guard} allows less in any hour ({sums}), and this alone is more than that. "
    "Held until it takes less, or is approved: {asked}",
    hold="blocked",
)
BEHIND = Because(
    "BehindOthers",
    "what comes first waits already for room in the hour that {guard} looks at. Held until that has gone on: {asked}",
    hold="blocked",
)
FOLLOWS_HELD = Because("FollowsHeld", "{object} is to follow {other}, which is held.")
UNVERSIONED = Because(
    "ObjectUnversioned",
    "{object} was read without a uid and a resourceVersion, so that the API server could not tell whether it changed "
    "since: nothing is written. A file of a cluster must hold its objects as the API server serves them.",
    hold="blocked",
)

# What an approval lets pass.
BY_LIMITS = frozenset({OVER_PLAN.code, OVER_HOUR.code, OVER_HOUR_ALONE.code, BEHIND.code})

REASONS = (WRONG_CLUSTER, OVER_PLAN, OVER_HOUR, OVER_HOUR_ALONE, BEHIND, FOLLOWS_HELD, UNVERSIONED)
