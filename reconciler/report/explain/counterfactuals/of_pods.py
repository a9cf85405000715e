"""Changes of pods, their budgets and claims that would make their node a drain candidate."""

from reconciler.fleet.amounts import pod_held, read_gpu_requests
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod, PodSpec
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.plan.decision import Ref, pod_ref
from reconciler.model.plan.evaluation import DrainEligibility
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.capacity.demand import GangIndex, title_of
from reconciler.plan.drain.codes.blockers import GangBudget, GangOfAnotherPolicy, GangStays, UtilizationTooHigh
from reconciler.plan.nodes.eviction import PodBudgets
from reconciler.report.explain.counterfactuals.edits import (
    RUNNING,
    Counterfactual,
    EditRule,
    annotated,
    made_ready,
    pod_of,
    ref_of_pod_in,
    replace,
    with_observed,
    with_pod,
)

_STAYS = "zz-another"  # sorts before all other nodes


def with_annotations(clause: str, **annotations: str) -> EditRule:
    def line(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
        ref = ref_of_pod_in(weighed)
        if ref is None:
            return None
        after = with_pod(inputs, ref, lambda pod: annotated(pod, **annotations))
        return Counterfactual(after, clause, (ref,))

    return line


def gone(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Deletes the pod, and forgets recent evictions without a replacement."""
    ref = ref_of_pod_in(weighed)
    if ref is None:
        return None
    after = with_pod(inputs, ref, lambda _: None)
    drained = inputs.memory.drained
    left = tuple(each for each in drained.evicted if each.title != f"{ref.namespace}/{ref.name}")
    memory = replace(inputs.memory, drained=replace(drained, evicted=left))
    return Counterfactual(replace(after, memory=memory), "is deleted", (ref,))


def budget_opened(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """As many disruptions as needed; for a gang, all of its pods."""
    pod = pod_of(inputs, weighed)
    budgets = PodBudgets(inputs.observed.budgets).of(pod) if pod is not None else ()
    if len(budgets) != 1:
        return None
    facts = weighed.reason.facts
    wanted = facts.pods if isinstance(facts, GangBudget) else 1
    allowed = max(wanted, budgets[0].status.disruptions_allowed + 1)
    budget = budgets[0]
    ref = Ref("PodDisruptionBudget", budget.metadata.namespace, budget.metadata.name)
    clause = f"allows {'a disruption' if allowed == 1 else f'{allowed} disruptions'}"
    status = replace(budget.status, disruptions_allowed=allowed, observed_generation=budget.metadata.generation)
    opened = replace(budget, status=status)
    left = tuple(opened if each.title == budget.title else each for each in inputs.observed.budgets)
    return Counterfactual(with_observed(inputs, budgets=left), clause, (ref,))


def one_budget(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Removes the other budgets, as if they did not select the pod."""
    pod = pod_of(inputs, weighed)
    others = PodBudgets(inputs.observed.budgets).of(pod)[1:] if pod is not None else ()
    titles = {each.title for each in others}
    left = tuple(each for each in inputs.observed.budgets if each.title not in titles)
    if pod is None:
        return None
    clause = f"{' and '.join(sorted(titles))} {'does' if len(titles) == 1 else 'do'} not select Pod/{pod.title}"
    return Counterfactual(with_observed(inputs, budgets=left), clause)


def no_gang(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Removes gangRef from the claims of its pods on the node."""
    facts = weighed.reason.facts
    if not isinstance(facts, GangStays | GangOfAnotherPolicy):
        return None
    gangs, gang = GangIndex(inputs.observed), facts.gang
    there = (pod for pod in inputs.observed.pods if pod.node == weighed.node)
    of_it = [pod for pod in there if (found := gangs.of(pod)) and title_of(found) == gang]
    claims = {(pod.metadata.namespace, pod.metadata.annotations.claim) for pod in of_it}

    def freed(whole: Unstructured) -> Unstructured:
        if whole.kind != "GpuClaim" or (whole.metadata.namespace, whole.name) not in claims:
            return whole
        spec = {key: said for key, said in whole.spec.items() if key != "gangRef"}
        return replace(whole, rest={**whole.rest, "spec": spec})

    titles = " and ".join(Ref("GpuClaim", namespace, name).title for namespace, name in sorted(claims))
    after = with_observed(inputs, policies=tuple(map(freed, inputs.observed.policies)))
    return Counterfactual(after, f"{titles} has no gangRef") if claims else None


def with_room(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Free capacity on another node of the same kind, which stays because of a small pod that is not moved."""
    before = next((each for each in inputs.observed.nodes if each.name == weighed.node), None)
    if before is None or any(each.name == _STAYS for each in inputs.observed.nodes):
        return None
    labels = {**before.metadata.labels, names.HOSTNAME: _STAYS}
    own = replace(before.metadata, name=_STAYS, uid=_STAYS, labels=labels)
    left = tuple(each for each in before.spec.taints if not each.key.startswith(names.OURS))
    node = made_ready(Node(own, replace(before.spec, taints=left), before.status))
    kept = annotated(Pod(Metadata(_STAYS, "default", _STAYS), PodSpec(_STAYS), RUNNING), safe_to_evict="false")
    clause = f"another node of the same pool and machine type as Node/{weighed.node} has pods and free capacity"
    after = with_observed(inputs, nodes=(*inputs.observed.nodes, node), pods=(*inputs.observed.pods, kept))
    return Counterfactual(after, clause)


def less_work(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Deletes its largest pods, as many as needed."""
    facts = weighed.reason.facts
    if not isinstance(facts, UtilizationTooHigh):
        return None
    too_much = facts.used - facts.threshold * facts.total // 100
    gone: list[str] = []
    for amount, _, pod in _amounts(inputs, weighed.node, facts.resource):
        if too_much > 0:
            gone.append(pod.title)
            too_much -= amount
            inputs = with_pod(inputs, pod, lambda _: None)
    clause = f"{' and '.join(gone)} {'is' if len(gone) == 1 else 'are'} deleted"
    return Counterfactual(inputs, clause) if gone else None


def _amounts(inputs: Inputs, node: str, resource: str) -> list[tuple[int, str, Ref]]:
    """Pods of the node with their requests, the largest first."""
    gpu_requests, is_gpus = read_gpu_requests(inputs.observed.policies), resource == names.NVIDIA_GPU
    found = [
        (max(pod_held(pod).get(resource, 0), gpu_requests.claimed_by(pod) if is_gpus else 0), pod.title, pod_ref(pod))
        for pod in inputs.observed.pods
        if pod.node == node and pod.counts
    ]
    return sorted(found, reverse=True)
