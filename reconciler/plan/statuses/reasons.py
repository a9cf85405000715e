"""Why a status is written."""

from reconciler.plan.reasons import Because

PLANNER = "statuses"

TOLD = Because("StatusTold", "{object} is told how it stands: {standing}.")

REASONS = (TOLD,)
