"""What would have to be otherwise for a node to be a candidate for a drain, in words: a table by kind of change."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reconciler.model.instant import timestamp
from reconciler.model.plan.action import Ref
from reconciler.model.plan.drain_eligibility import DrainEligibility
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.explain.counterfactuals import change as changes
from reconciler.plan.explain.counterfactuals.change import Change, SizeField, SizeLowered
from reconciler.plan.explain.counterfactuals.changes import flipped
from reconciler.report.wording import counted

_MOST_NAMED = 10
_FIELDS: Mapping[SizeField, str] = {
    "min_gpu_utilization_percent": "minGPUUtilizationPercent",
    "min_unutilized_gpu_nodes": "minUnutilizedGPUNodes",
    "warm_nodes": "warmNodes",
    "min_size": "minSize",
}


def changes_of(inputs: Inputs, weighed: DrainEligibility) -> str:
    """One sentence: what would have to be otherwise; nothing where nothing near would do."""
    after, told = flipped(inputs, weighed)
    return " and ".join(map(change_words, told)) if after is not None else ""


def change_words(change: Change) -> str:
    """As a part of a sentence."""
    return WORDS[type(change)](change)


def _each(refs: Sequence[Ref]) -> str:
    if len(refs) == 1:
        return refs[0].title
    named = [each.title for each in refs[:_MOST_NAMED]]
    if len(refs) > _MOST_NAMED:
        named.append(f"{len(refs) - _MOST_NAMED} more")
    return f"each of these {counted(len(refs), 'pod' if refs[0].kind == 'Pod' else refs[0].kind)} ({', '.join(named)})"


def _titles(refs: Sequence[Ref]) -> str:
    return " and ".join(each.title for each in refs)


def _size_lowered(change: SizeLowered) -> str:
    words = [
        f"{_FIELDS[field]} of NodeProvisioner/{change.provisioner} is {value} or "
        f"{'more' if field == 'min_gpu_utilization_percent' else 'less'}"
        for field, value in change.figures
    ]
    return " and ".join([*words, *(["no schedule asks for more"] if change.without_schedules else [])])


WORDS: Mapping[type[Change], Callable[[Any], str]] = {
    changes.DisruptionEnds: lambda it: f"Karpenter does not disrupt Node/{it.node}",
    changes.TaintRemoved: lambda it: f"the taint {it.key} of Node/{it.node} is taken off",
    changes.NodeUncordoned: lambda it: f"Node/{it.node} is not cordoned",
    changes.DriverUpgraded: lambda it: f"the driver of Node/{it.node} is upgraded",
    changes.OptOutRemoved: lambda it: f"Node/{it.node} does not carry {it.key}: {it.value}",
    changes.GpusReturned: lambda it: f"no GPU of Node/{it.node} is lent",
    changes.PodArrives: lambda it: f"a pod runs on Node/{it.node} that may be moved",
    changes.NodeReady: lambda it: f"Node/{it.node} is ready",
    changes.NodeLikeIt: lambda it: f"there is another node like Node/{it.node}, in use and with room",
    changes.NodesReady: lambda it: f"{it.nodes} more nodes of {it.pool} are ready",
    changes.PoolResumed: lambda it: f"GpuPool/{it.pool} is not suspended",
    changes.Thawed: lambda it: (
        "not everything is frozen" if it.scope.kind == "everything" else f"{it.scope.words} is not frozen"
    ),
    changes.TurnComes: lambda _: "it is its turn, in the next plans",
    changes.PlannerDone: lambda it: f"{it.planner} has done with it, in the next plan",
    changes.TimePasses: lambda it: f"it is {timestamp(it.at)} or later",
    changes.PodAnnotated: lambda it: f"{_each(it.of)} carries {it.key}: {it.value}",
    changes.AnnotationRemoved: lambda it: f"{_each(it.of)} does not carry {it.key}",
    changes.RunsNotToCompletion: lambda it: f"{_each(it.of)} does not say that it runs to completion",
    changes.NotUnsafeToEvict: lambda it: f"{_each(it.of)} does not say that it is not safe to evict",
    changes.NoGpuClaim: lambda it: f"{_each(it.of)} is of no GpuClaim",
    changes.PodGone: lambda it: f"{_each(it.of)} is gone",
    changes.BudgetAllows: lambda it: (
        f"{_each(it.of)} allows {'a disruption' if it.disruptions == 1 else f'{it.disruptions} disruptions'}"
    ),
    changes.BudgetsSelectOthers: lambda it: (
        f"{' and '.join(it.budgets)} {'does' if len(it.budgets) == 1 else 'do'} not select {it.pod}"
    ),
    changes.GangRefRemoved: lambda it: f"{_titles(it.claims)} has no gangRef",
    changes.PodsGone: lambda it: f"{_titles(it.pods)} {'is' if len(it.pods) == 1 else 'are'} gone",
    changes.ThresholdRaised: lambda it: (
        f"utilizationThresholdPercent of DrainPolicy/{it.policy} is {it.percent} or more"
    ),
    changes.ClusterMinLowered: lambda it: (
        f"clusterMin of {' and of '.join(f'DrainPolicy/{each}' for each in it.policies)} "
        f"wants {it.left} of {it.resource} or less"
    ),
    changes.ParallelismRaised: lambda it: f"maxDrainParallelism of DrainPolicy/{it.policy} is {it.nodes} or more",
    changes.SizeLowered: _size_lowered,
    changes.ProvisionerRemoved: lambda it: f"there is no NodeProvisioner/{it.provisioner}",
}
