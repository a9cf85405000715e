"""Nodes that DrainPolicies empty: which, when, and where their pods go."""

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.memory import Memory
from reconciler.plan.drain import reasons, release
from reconciler.plan.drain.codes import words
from reconciler.plan.drain.invariants import INVARIANTS
from reconciler.plan.drain.memory import remembered
from reconciler.plan.drain.planner import drain
from reconciler.plan.feature.feature import Feature, FeatureGauge, declared_in
from reconciler.plan.feature.write_rights import Enforced, WriteRight


def _settled(inputs: Inputs, fleet: Fleet, decisions: tuple[Decision, ...], memory: Memory) -> Memory:
    return msgspec.structs.replace(memory, drained=remembered(inputs, fleet, decisions, memory.drained))


def _drained(enforced: Enforced) -> set[str]:
    """A pool is drained."""
    return {""} if enforced.is_any or enforced.drained else set()


def _candidates(cycled: CycleResult) -> dict[tuple[str, ...], float]:
    return {(): sum(each.is_candidate for each in cycled.plan.weighed) if cycled.plan else 0}


FEATURE = Feature(
    name=reasons.PLANNER,
    plan=drain,
    settle=_settled,
    needs=("nodes", "pods", "budgets", "node_claims"),
    reasons=(*reasons.REASONS, *declared_in(release)),
    words=words.WORDS,
    rights=(
        WriteRight(
            _drained,
            "",
            ("pods/eviction",),
            ("create",),
            "Pods on nodes of drained pools are asked to leave: the API server minds PodDisruptionBudgets.",
        ),
    ),
    pod_annotations=(names.EVICT_AT,),
    gauges=(FeatureGauge("reconciler_unneeded_nodes", "Nodes whose pods would all fit elsewhere.", (), _candidates),),
    release=(release.eviction_times,),
    invariants=INVARIANTS,
)
