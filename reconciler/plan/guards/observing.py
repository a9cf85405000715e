"""Which pools are only observed, and why: their policy says so, or their NodePool was neither made nor adopted by these
policies. Decisions about their nodes are told and not carried out."""

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.plan.decision import Decision
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
