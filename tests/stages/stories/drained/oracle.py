"""Which nodes could go as things stand, judged node by node and by no planner: rules restated from what people are
told of drains, and places by walking along the nodes with the scheduler's predicates.

A node counts only if its pods find places in whatever order the others are walked along: which packing is found where
some fail is the planner's own affair.
"""

from collections.abc import Iterator

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.fleet import Fleet
from reconciler.fleet.pod_classes import PodClass
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.workload import PodDisruptionBudget
from reconciler.model.instant import instant
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.scaling import DrainPolicy

SETTLED_MS = 30 * 60_000
AWAITED_MS = 3 * 60 * 60_000  # a window has opened since
_MAKERS = ("v1 ReplicationController", "apps/v1 ReplicaSet", "apps/v1 StatefulSet", "batch/v1 Job")
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000}


class Oracle:
    """Of a cluster as it was seen last."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._observed = inputs.observed
        self._fleet = Fleet(inputs.observed)
        self._by_node: dict[str, list[Pod]] = {each.name: [] for each in inputs.observed.nodes}
        for pod in inputs.observed.pods:
            if pod.node in self._by_node and not pod.is_finished:
                self._by_node[pod.node].append(pod)

    def left_behind(self) -> Iterator[str]:
        """Nodes that could go, and have been there for long."""
        if any(not pod.node and not pod.is_finished and not pod.metadata.leaving for pod in self._observed.pods):
            return  # demand comes first
        if self.slots_are_taken() or any(
            each.metadata.leaving and self._counting(each) for each in self._observed.nodes
        ):
            return  # and so do pods on nodes that somebody deletes
        if any(self._is_held(each) for each in self._observed.nodes):
            return  # room is kept for what runs there, until somebody approves that it goes
        for node in sorted(self._observed.nodes, key=lambda each: each.name):
            policy = self._policy(node.pool)
            if policy is not None and self._may_go(node, policy) and self._all_fit(node):
                pods = ", ".join(pod.name for pod in self._counting(node))
                yield f"{node.name} could go, with {pods}"

    def slots_are_taken(self) -> bool:
        """By nodes that are being deleted, and that Karpenter can't finish."""
        leaving = sum(each.metadata.leaving for each in self._observed.nodes)
        return any(leaving >= each.spec.max_scale_down_parallelism for each in self._inputs.desired.drains)

    def rests(self, pool: str) -> bool:
        """Since drains there were in vain: for half an hour, and twice as long each further time, up to four hours."""
        for each in self._inputs.memory.drained.in_vain:
            if each.pool == pool and self._inputs.now < each.at + SETTLED_MS * min(8, 2 ** (each.times - 1)):
                return True
        return False

    def _policy(self, pool: str) -> DrainPolicy | None:
        declared = {each.name: each.spec for each in self._inputs.desired.pools}
        if pool not in declared or declared[pool].suspend:
            return None
        drains = (each.spec for each in self._inputs.desired.drains)
        return next((each for each in drains if {"*", pool} & set(each.pool_names)), None)

    def _counting(self, node: Node) -> list[Pod]:
        return [pod for pod in self._by_node[node.name] if pod.counts]

    def _may_go(self, node: Node, policy: DrainPolicy) -> bool:
        now, metadata = self._inputs.now, node.metadata
        if not _is_plain(node) or now - instant(metadata.creation_timestamp) < SETTLED_MS:
            return False
        if metadata.annotations.scale_down_disabled or metadata.annotations.do_not_disrupt:
            return False
        drained = self._inputs.memory.drained
        if any(each.node == node.name for each in drained.setbacks) or self.rests(node.pool):
            return False
        mark = node.taint(names.DRAIN_CANDIDATE)
        if policy.windows and mark is not None and now - 1_000 * int(mark.value) < AWAITED_MS:
            return False
        pods = self._counting(node)
        used, total = sum(pod.gpus for pod in pods), _gpus(node)
        if not pods or not total or 100 * used > policy.utilization_threshold_percent * total:
            return False
        if not self._leaves_enough(node) or not self._is_let_through(used):
            return False
        return all(self._may_move(pod) for pod in pods)

    def _leaves_enough(self, node: Node) -> bool:
        others = [each for each in self._observed.nodes if each.name != node.name and not each.metadata.leaving]
        policies = [each.spec for each in self._inputs.desired.drains if not each.spec.suspend]
        for resource, least in (pair for each in policies for pair in each.cluster_min.items()):
            if sum(_amount(each, resource) for each in others) < least.milli:
                return False
        wishes = [each.spec for each in self._inputs.desired.provisioners if each.spec.pool_name == node.pool]
        if not wishes:
            return True
        (wish,), there = wishes, [each for each in self._observed.nodes if each.pool == node.pool]
        used, total = sum(sum(pod.gpus for pod in self._by_node[each.name]) for each in there), sum(map(_gpus, there))
        percent, fewest = wish.min_gpu_utilization_percent, min(map(_gpus, there))
        if 100 * used >= percent * total or not all(map(_is_plain, there)):
            return False
        packed = -(-used // fewest) + wish.min_unutilized_gpu_nodes
        return len(there) > max(100 * used // (percent * fewest), packed, wish.min_size)

    def _is_held(self, node: Node) -> bool:
        """A candidate whose time has come, and that no guard lets go."""
        gpus = sum(pod.gpus for pod in self._by_node[node.name])
        return node.taint(names.DRAIN_CANDIDATE) is not None and not self._is_let_through(gpus)

    def _is_let_through(self, gpus: int) -> bool:
        for guard in self._inputs.desired.guards:
            for ceiling in (guard.spec.per_plan, guard.spec.per_hour):
                if ceiling.max_disrupted_gpus is not None and gpus > ceiling.max_disrupted_gpus:
                    return False
        return True

    def _may_move(self, pod: Pod) -> bool:
        said = pod.metadata.annotations
        if pod.metadata.leaving or said.safe_to_evict in {"false", "on-completion"} or said.claim:
            return False
        if not self._may_be_disrupted(pod):
            return False
        if said.safe_to_evict != "true" and (_is_local(pod) or not _is_made_anew(pod)):
            return False
        budgets = [each for each in self._observed.budgets if _selects(each, pod)]
        return len(budgets) < 2 and all(each.status.disruptions_allowed > 0 for each in budgets)

    def _may_be_disrupted(self, pod: Pod) -> bool:
        said = pod.metadata.annotations.do_not_disrupt
        if not said or said == "true":
            return not said
        return instant(pod.status.start_time) + int(said[:-1]) * _UNITS_MS[said[-1]] < self._inputs.now

    def _all_fit(self, node: Node) -> bool:
        what_if = self._fleet.snapshot
        row = what_if.rows.row_of[node.name]
        pods = [what_if.classes.of(pod).anew for pod in self._counting(node)]
        busy = [each for each in self._observed.nodes if _is_plain(each) and self._counting(each)]
        rows = [what_if.rows.row_of[each.name] for each in sorted(busy, key=lambda each: each.name) if each is not node]
        if not rows:
            return False
        with what_if.fork():
            what_if.vacate(row)
            orders = [rows[at:] + rows[:at] for at in range(len(rows))]
            orders += [order[::-1] for order in orders]
            return all(self._goes_in(pods, order) for order in orders)

    def _goes_in(self, pods: list[PodClass], rows: list[int]) -> bool:
        """Each pod on the first node that takes it, however they come."""
        what_if = self._fleet.snapshot
        judging = what_if.part(FilterChain)
        for order in (sorted(pods, key=lambda each: each.rank), sorted(pods, key=lambda each: each.rank)[::-1]):
            with what_if.fork():
                for each in order:
                    row = next((row for row in rows if judging.fits(each, row)), None)
                    if row is None:
                        return False
                    what_if.add(each, row)
        return True


def _is_local(pod: Pod) -> bool:
    lost = pod.metadata.annotations.safe_to_evict_local_volumes.split(",")
    kept = [each for each in pod.spec.volumes if each.name not in lost]
    on_disk = [each for each in kept if each.empty_dir is not None and each.empty_dir.medium != "Memory"]
    return bool(on_disk) or any(each.host_path is not None for each in kept)


def _is_made_anew(pod: Pod) -> bool:
    owner = pod.metadata.controller
    return owner is not None and f"{owner.api_version} {owner.kind}" in _MAKERS


def _is_plain(node: Node) -> bool:
    """Nobody has it in hand."""
    hard = [each for each in node.spec.taints if each.effect != "PreferNoSchedule" or each.key == names.DELETION_TIME]
    upgrade = node.metadata.labels.get(names.UPGRADE_STATE, "")
    return node.is_ready and not (node.metadata.leaving or node.spec.unschedulable or hard or upgrade)


def _gpus(node: Node) -> int:
    return int(node.status.allocatable.get(names.NVIDIA_GPU, "0"))


def _amount(node: Node, resource: str) -> int:
    found = node.status.allocatable.get(resource, "0")
    return int(found[:-1]) if found.endswith("m") else 1_000 * int(found)


def _selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    selector = budget.spec.selector
    is_here = budget.metadata.namespace == pod.metadata.namespace
    return is_here and selector is not None and selector.matches(pod.metadata.labels)
