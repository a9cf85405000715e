"""What the pressure feature reports in a plan, and nodes under pressure after a plan."""

from collections import Counter

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.feature_report import FeatureReport
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Memory
from reconciler.plan.pressure.ledgers import elastic_pods, ledgers_of, pressed_resources, pressure_policies
from reconciler.plan.pressure.memory import MigrationMemory
from reconciler.plan.pressure.reasons import PLANNER, PressedResource


class PressureReport(msgspec.Struct, FeatureReport, frozen=True, tag=True):
    nodes: dict[str, int] = {}  # number of nodes under pressure, accounted for or not, by pool


class PressedNode(msgspec.Struct, frozen=True, gc=False):
    """A node under pressure, whether or not migrations account for the pressure."""

    node: str
    pool: str
    pressed: tuple[PressedResource, ...]
    migrating: int  # pods that are leaving because of pressure


def pressed_nodes(inputs: Inputs, fleet: Fleet, memory: Memory) -> tuple[PressedNode, ...]:
    """Nodes under pressure, by name. `memory`: after the plan, so that only migrations count that the guards allow."""
    policies = pressure_policies(inputs.desired)
    migrations = [each for each in memory.section(PLANNER, MigrationMemory).migrations if each.gone_at is None]
    leaving, migrating = Counter(each.node for each in migrations), {each.uid for each in migrations}
    found = []
    for name, ledger in sorted(ledgers_of(inputs, fleet, policies, elastic_pods(fleet), migrating).items()):
        node, pressed = fleet.node(name), pressed_resources(ledger)
        if node is not None and pressed:
            found.append(PressedNode(name, node.pool, pressed, leaving[name]))
    return tuple(found)
