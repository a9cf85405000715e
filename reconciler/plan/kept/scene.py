"""A plan and all that it followed from: what reports and explanations are made of."""

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.planned.inputs import Inputs
from reconciler.model.planned.plan import Plan


class Scene(msgspec.Struct, frozen=True):
    """What went in, and what came of it."""

    inputs: Inputs
    fleet: Fleet
    plan: Plan
