"""Observed pools: pools whose decisions are reported and not carried out. A pool is observed if its policy says so, or
if its NodePool was neither created nor adopted by these policies.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.plan.decision import Decision, Taint
from reconciler.model.plan.guard_verdict import ObservedTaint
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.guards.frozen import Freeze, Freezes

# Kinds that belong to nodes of a pool.
OF_NODES = frozenset({"Node", "NodeClaim", "Pod"})


class Observation(msgspec.Struct, frozen=True):
    """Why no action is carried out in a pool. At least one cause applies."""

    pool: str
    by_mode: bool = False  # the GpuPool is in mode Observe
    is_unadopted: bool = False  # reconciler did not create the NodePool, and no policy adopts it
    environment: str = ""  # another environment, which owns the NodePool
    is_suspended: bool = False  # the GpuPool is suspended: its decisions are held
    freeze: Freeze | None = None  # freeze of the pool, of its guard, or of everything

    @property
    def causes_text(self) -> str:
        """The causes, as a clause."""
        return ", and ".join(cause for cause, _ in self._causes())

    @property
    def unless(self) -> str:
        """Conditions for carrying out the decisions, as a clause after "if"."""
        return " and ".join(condition for _, condition in self._causes())

    def _causes(self) -> Iterator[tuple[str, str]]:
        """Each cause that applies, and the condition under which the cause would not apply."""
        pool, node_pool = f"GpuPool/{self.pool}", f"NodePool/{self.pool}"
        if self.by_mode:
            yield f"{pool} is in mode Observe", f"{pool} were in mode Enforce"
        if self.is_unadopted:
            was_not_created = f"{node_pool} was not created by reconciler and is not adopted"
            yield was_not_created, f"{node_pool}, which reconciler did not create, were adopted"
        if self.environment:
            other = f"environment {self.environment}"
            yield f"{node_pool} belongs to {other}", f"{node_pool} did not belong to {other}"
        if self.is_suspended:
            yield f"{pool} is suspended", f"{pool} were not suspended"
        if self.freeze is not None:
            scope = self.freeze.scope_text
            yield f"{scope} is frozen {self.freeze.until_text}", f"{scope} were not frozen"


def observes(inputs: Inputs, pool: str) -> bool:
    """Whether the pool is observed only."""
    declared = inputs.desired.pool(pool) if pool else None
    return declared is not None and (declared.spec.mode == "Observe" or pool in inputs.unowned_node_pools)


def observation_of(inputs: Inputs, pool: str) -> Observation | None:
    """Why the pool is observed only; None if it is not, or no policy declares the pool."""
    declared = inputs.desired.pool(pool) if pool else None
    if declared is None or not observes(inputs, pool):
        return None
    by_mode, environment = declared.spec.mode == "Observe", other_keeper(inputs, pool)
    is_others = pool in inputs.unowned_node_pools and not environment
    # A NodePool with adopt: true is adopted as soon as the mode allows.
    return Observation(pool, by_mode, is_others and not (by_mode and declared.spec.adopt), environment)


def inaction_of(inputs: Inputs, fleet: Fleet, pool: str) -> Observation | None:
    """Why no action is carried out in the pool: observed only, suspended or frozen; None if actions are carried out."""
    observation, declared = observation_of(inputs, pool), inputs.desired.pool(pool) if pool else None
    freeze = Freezes(inputs, fleet).of_pool(pool)
    is_suspended = declared is not None and declared.spec.suspend
    if freeze is None and not is_suspended:
        return observation
    found = observation or Observation(pool)
    return msgspec.structs.replace(found, is_suspended=is_suspended, freeze=freeze)


def other_keeper(inputs: Inputs, pool: str) -> str:
    """The other environment that owns the NodePool of a pool; empty if none does."""
    if pool not in inputs.unowned_node_pools:
        return ""
    node_pool = next(each for each in inputs.observed.node_pools if each.name == pool)
    return node_pool.metadata.annotations.get(names.ENVIRONMENT, "") if node_pool.is_ours else ""


def is_report_only(inputs: Inputs, decision: Decision) -> bool:
    """Whether the action is reported only. The adoption of a NodePool, and the labels that follow on its nodes, depend
    on the mode alone.
    """
    if not observes(inputs, decision.pool):
        return False
    declared = inputs.desired.pool(decision.pool)
    is_told = declared is not None and declared.spec.mode == "Observe"
    return is_told or (decision.subject.kind in OF_NODES and not decision.after)


def observation_behind(inputs: Inputs, decision: Decision) -> Observation | None:
    """Why a decision is not carried out because of its pool; None if the pool allows the decision."""
    observation = observation_of(inputs, decision.pool)
    if observation is None or decision.subject.kind in OF_NODES | {"NodeProvisioner"}:
        return observation
    return Observation(decision.pool, by_mode=True) if observation.by_mode else None


# --- Imagined taints: taints that nodes of observed pools would have, kept in the memory because they are not written.

ByNode = Mapping[tuple[str, str], Sequence[ObservedTaint]]


def by_node(inputs: Inputs) -> ByNode:
    """Imagined taints by name and uid of the node."""
    observed_taints: dict[tuple[str, str], list[ObservedTaint]] = {}
    for each in inputs.memory.imagined:
        observed_taints.setdefault((each.node, each.uid), []).append(each)
    return observed_taints


def as_imagined(node: Node, taints: Sequence[ObservedTaint]) -> Node:
    """The node with its imagined taints, which replace real taints of the same keys."""
    keys = {each.key for each in taints}
    kept = tuple(each for each in node.spec.taints if each.key not in keys)
    borne = tuple(NodeTaint(each.key, each.effect, each.value) for each in taints)
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=kept + borne))


def imagined_after(inputs: Inputs, fleet: Fleet, decisions: Iterable[Decision]) -> tuple[ObservedTaint, ...]:
    """Imagined taints after the plan, without those of deleted nodes and of nodes whose pool is not observed
    any more.
    """
    observed_taints = {
        (each.node, each.uid, each.key): each
        for each in inputs.memory.imagined
        if _is_imagined_still(inputs, fleet, each)
    }
    for each in decisions:
        act, subject = each.act, each.subject
        # An imagined drain never empties its node, so its decision is repeated in each plan.
        if each.would and isinstance(act, Taint) and subject.kind == "Node" and act.key != names.DRAINING:
            if act.value is None:
                observed_taints.pop((subject.name, subject.uid, act.key), None)
            else:
                taint = ObservedTaint(subject.name, subject.uid, act.key, act.value, act.effect)
                observed_taints[subject.name, subject.uid, act.key] = taint
    return tuple(sorted(observed_taints.values()))


def _is_imagined_still(inputs: Inputs, fleet: Fleet, each: ObservedTaint) -> bool:
    node = fleet.node(each.node)
    if node is None:
        return bool(inputs.observed.why_unread("nodes"))
    return node.metadata.uid == each.uid and not node.metadata.leaving and observes(inputs, node.pool)
