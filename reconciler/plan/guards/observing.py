"""Which pools are only observed, and why: their policy says so, or their NodePool was neither made nor adopted by these
policies. Decisions about their nodes are told and not carried out.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.plan.decision import Decision, Taint
from reconciler.model.plan.guard_verdict import ObservedTaint
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.guards.frozen import Freeze, Freezes

# Whose nodes they are decides over these.
OF_NODES = frozenset({"Node", "NodeClaim", "Pod"})


class Observation(msgspec.Struct, frozen=True):
    """Why nothing is carried out in a pool. At least one of the causes applies."""

    pool: str
    by_mode: bool = False  # the GpuPool is in mode Observe
    is_unadopted: bool = False  # someone else made the NodePool, and an edit of the policies must adopt it
    environment: str = ""  # another one, which keeps the NodePool
    is_suspended: bool = False  # the GpuPool is; decisions are held then, and consequences would be
    freeze: Freeze | None = None  # of the pool, of what a guard guards, or of everything

    @property
    def causes_text(self) -> str:
        """The causes, as a clause."""
        node_pool = f"NodePool/{self.pool}"
        parts = (
            (self.by_mode, f"GpuPool/{self.pool} is in mode Observe"),
            (self.is_unadopted, f"{node_pool} was made by someone else and is not adopted"),
            (bool(self.environment), f"{node_pool} is kept by environment {self.environment}"),
            (self.is_suspended, f"GpuPool/{self.pool} is suspended"),
        )
        frozen = [f"{self.freeze.scope_text} is frozen {self.freeze.until_text}"] if self.freeze is not None else []
        return ", and ".join([*(words for applies, words in parts if applies), *frozen])

    @property
    def unless(self) -> str:
        """What would have to be for the decisions to be carried out, as a clause that follows "if"."""
        node_pool = f"NodePool/{self.pool}"
        parts = (
            (self.by_mode, f"GpuPool/{self.pool} were in mode Enforce"),
            (self.is_unadopted, f"{node_pool}, which someone else made, were adopted"),
            (bool(self.environment), f"{node_pool} were not kept by environment {self.environment}"),
            (self.is_suspended, f"GpuPool/{self.pool} were not suspended"),
        )
        frozen = [f"{self.freeze.scope_text} were not frozen"] if self.freeze is not None else []
        return " and ".join([*(words for applies, words in parts if applies), *frozen])


def observes(inputs: Inputs, pool: str) -> bool:
    """Whether the pool is only looked at."""
    declared = inputs.desired.pool(pool) if pool else None
    return declared is not None and (declared.spec.mode == "Observe" or pool in inputs.unowned_node_pools)


def observation_of(inputs: Inputs, pool: str) -> Observation | None:
    """Why the pool is only looked at; None where its nodes are acted on, and where no policy declares it."""
    declared = inputs.desired.pool(pool) if pool else None
    if declared is None or not observes(inputs, pool):
        return None
    by_mode, environment = declared.spec.mode == "Observe", other_keeper(inputs, pool)
    is_others = pool in inputs.unowned_node_pools and not environment
    # A NodePool that is to be adopted is adopted as soon as the mode allows it.
    return Observation(pool, by_mode, is_others and not (by_mode and declared.spec.adopt), environment)


def inaction_of(inputs: Inputs, fleet: Fleet, pool: str) -> Observation | None:
    """Why nothing is done in the pool: it is only observed, suspended or frozen; None where it is acted on."""
    observation, declared = observation_of(inputs, pool), inputs.desired.pool(pool) if pool else None
    freeze = Freezes(inputs, fleet).of_pool(pool)
    is_suspended = declared is not None and declared.spec.suspend
    if freeze is None and not is_suspended:
        return observation
    found = observation or Observation(pool)
    return msgspec.structs.replace(found, is_suspended=is_suspended, freeze=freeze)


def other_keeper(inputs: Inputs, pool: str) -> str:
    """The other environment that keeps the NodePool of a pool; nothing where none does."""
    if pool not in inputs.unowned_node_pools:
        return ""
    node_pool = next(each for each in inputs.observed.node_pools if each.name == pool)
    return node_pool.metadata.annotations.get(names.ENVIRONMENT, "") if node_pool.is_ours else ""


def is_report_only(inputs: Inputs, decision: Decision) -> bool:
    """Whether the action is told and not carried out. The NodePool itself may be adopted, and then the nodes get its
    labels: both follow from the mode alone."""
    if not observes(inputs, decision.pool):
        return False
    declared = inputs.desired.pool(decision.pool)
    is_told = declared is not None and declared.spec.mode == "Observe"
    return is_told or (decision.subject.kind in OF_NODES and not decision.after)


def observation_behind(inputs: Inputs, decision: Decision) -> Observation | None:
    """Why a decision is not carried out, whatever holds it besides; None where it is."""
    observation = observation_of(inputs, decision.pool)
    if observation is None or decision.subject.kind in OF_NODES | {"NodeProvisioner"}:
        return observation
    return Observation(decision.pool, by_mode=True) if observation.by_mode else None


# --- Taints that nodes of pools in mode Observe would bear: kept in the memory, since nothing is written there.

ByNode = Mapping[tuple[str, str], Sequence[ObservedTaint]]


def by_node(inputs: Inputs) -> ByNode:
    """What is imagined of each node, by its name and uid."""
    observed_taints: dict[tuple[str, str], list[ObservedTaint]] = {}
    for each in inputs.memory.imagined:
        observed_taints.setdefault((each.node, each.uid), []).append(each)
    return observed_taints


def as_imagined(node: Node, taints: Sequence[ObservedTaint]) -> Node:
    """The node, as if it bore them; nothing that it really bears counts beside one of the same key."""
    keys = {each.key for each in taints}
    kept = tuple(each for each in node.spec.taints if each.key not in keys)
    borne = tuple(NodeTaint(each.key, each.effect, each.value) for each in taints)
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=kept + borne))


def imagined_after(inputs: Inputs, fleet: Fleet, decisions: Iterable[Decision]) -> tuple[ObservedTaint, ...]:
    """What is imagined once the plan would be carried out; of nodes that went, or are acted on by now, nothing."""
    observed_taints = {
        (each.node, each.uid, each.key): each
        for each in inputs.memory.imagined
        if _is_imagined_still(inputs, fleet, each)
    }
    for each in decisions:
        act, subject = each.act, each.subject
        # What is drained in thought alone is never emptied: it stays what would begin.
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
