"""The drain feature: DrainPolicies decide which nodes are drained, when, and where the pods go."""

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.evaluation import DrainReport
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.memory import Memory
from reconciler.plan.drain import reasons, release
from reconciler.plan.drain.codes import words
from reconciler.plan.drain.invariants import INVARIANTS
from reconciler.plan.drain.memory import remembered
from reconciler.plan.drain.planner import drain
from reconciler.plan.feature.feature import CycleGauge, Feature, declared_in
from reconciler.plan.feature.write_rights import Enforced, WriteRight


def _settled(inputs: Inputs, fleet: Fleet, decisions: tuple[Decision, ...], memory: Memory) -> Memory:
    return msgspec.structs.replace(memory, drained=remembered(inputs, fleet, decisions, memory.drained))


def _drained(enforced: Enforced) -> set[str]:
    """The namespaces whose pods are evicted: all, if any pool is drained."""
    return {""} if enforced.is_any or enforced.drained else set()


def _candidates(cycled: CycleResult) -> dict[tuple[str, ...], float] | None:
    if cycled.plan is None:
        return None
    return {(): sum(each.is_candidate for each in cycled.plan.report(DrainReport).weighed)}


FEATURE = Feature(
    name=reasons.PLANNER,
    plan=drain,
    settle=_settled,
    needs=("nodes", "pods", "budgets", "node_claims"),
    report=DrainReport,
    reasons=(*reasons.REASONS, *declared_in(release)),
    words=words.WORDS,
    rights=(
        WriteRight(
            _drained,
            "",
            ("pods/eviction",),
            ("create",),
            "Evict pods from nodes of drained pools: the API server enforces PodDisruptionBudgets.",
        ),
    ),
    pod_annotations=(names.EVICT_AT,),
    gauges=(CycleGauge("reconciler_unneeded_nodes", "Nodes whose pods all fit on other nodes.", (), _candidates),),
    release=(release.eviction_times,),
    invariants=INVARIANTS,
)
