"""Rules across policies: references, conflicts, delays, weights and orders; and their shared context."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from reconciler.model.desired import Declared, Desired
from reconciler.model.policy.gpu import CapacityType, GpuClaim, GpuPool
from reconciler.model.policy.guards import ChangeApproval
from reconciler.model.policy.scaling import LEAST_DELAY_MS, DrainPolicy, NodeProvisioner, PressurePolicy
from reconciler.model.problem import Problem
from reconciler.policy.manifests.pool_values import MOST, overlapping, untainted
from reconciler.policy.tree import Mark, problem
from reconciler.policy.words import meant

# --- The context of cross-object rules: the Desired, and the position of each value.


class RuleContext(msgspec.Struct, frozen=True):
    """The objects of one environment."""

    desired: Desired
    marks: dict[tuple[str, str], dict[str, Mark]]  # by kind and name, then by path
    written: frozenset[tuple[str, str]]  # kind and name of all objects, including unreadable ones
    by_field: bool = False  # users locate values by field, not by line
    is_whole: bool = True  # False: a document could not be read and may contain further objects
    claims: tuple[Declared[GpuClaim], ...] = ()
    approvals: tuple[Declared[ChangeApproval], ...] = ()

    def problem(self, about: Declared[object], path: str, texts: tuple[str, str, str]) -> Problem:
        """A problem of a value of an object; `texts` is code, sentence and remedy."""
        marks = self.marks[about.kind, about.name]
        while path and path not in marks:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return problem(marks[path], *texts)

    def warning(self, about: Declared[object], path: str, texts: tuple[str, str, str]) -> Problem:
        """A problem that does not prevent the use of the policies."""
        return msgspec.structs.replace(self.problem(about, path, texts), severity="warning")

    def pools_named(self, names: list[str]) -> list[Declared[GpuPool]]:
        """The pools that a policy names; all pools for `*`."""
        return [pool for pool in self.desired.pools if "*" in names or pool.name in names]

    def place(self, about: Declared[object], path: str = "") -> str:
        """file:line of a value, or its object, for cross-references in remedies."""
        if self.by_field:
            return self.marks[about.kind, about.name][""].file
        mark = self.marks[about.kind, about.name].get(path) or self.marks[about.kind, about.name][""]
        return f"{mark.file}:{mark.line}"


Policy = TypeVar("Policy", NodeProvisioner, DrainPolicy, PressurePolicy)
Named = TypeVar("Named", DrainPolicy, PressurePolicy)


def active(policies: Sequence[Declared[Policy]]) -> list[Declared[Policy]]:
    """Policies that are not suspended: a suspended policy causes no conflict."""
    return [each for each in policies if not each.spec.suspend]


def one_provisioner_a_pool(wish: RuleContext) -> Iterator[Problem]:
    """Two NodeProvisioners would scale the pool to two sizes."""
    first: dict[str, Declared[NodeProvisioner]] = {}
    for each in active(wish.desired.provisioners):
        other = first.setdefault(each.spec.pool_name, each)
        if other is not each:
            text = f"NodeProvisioner/{other.name} already scales the pool {each.spec.pool_name}"
            remedy = f"see {wish.place(other)}; a pool can have only one NodeProvisioner"
            yield wish.problem(each, "spec.poolName", ("RC302", text, remedy))


def one_order_for_the_same_pods(wish: RuleContext) -> Iterator[Problem]:
    """Two pools whose nodes are equivalent for a pod need different orders, so that the first one is well-defined."""
    first: dict[object, Declared[NodeProvisioner]] = {}
    for each in active(wish.desired.provisioners):
        pool = wish.desired.pool(each.spec.pool_name)
        if pool is None:
            continue
        other = first.setdefault((each.spec.order, _visible_to_pods(pool.spec)), each)
        if other is not each and other.spec.pool_name != each.spec.pool_name:
            text = (
                f"the pools of this NodeProvisioner and of NodeProvisioner/{other.name} accept the same pods, and both "
                f"NodeProvisioners have order {each.spec.order}"
            )
            remedy = f"see {wish.place(other)}; give one of them another order"
            yield wish.problem(each, "spec.order", ("RC303", text, remedy))


def _visible_to_pods(pool: GpuPool) -> object:
    """The properties of a pool that affinity, tolerations and requests of a pod can distinguish."""
    taints = sorted((taint.key, taint.value, taint.effect) for taint in pool.taints)
    demands = sorted((each.key, each.operator, tuple(sorted(each.values))) for each in pool.requirements)
    return pool.devices.model, pool.devices.count, tuple(taints), tuple(demands), tuple(sorted(pool.labels.items()))


def one_drain_policy_a_pool(wish: RuleContext) -> Iterator[Problem]:
    """Two DrainPolicies would count the same nodes against two limits."""
    yield from _one_a_pool(wish, wish.desired.drains, "RC308")


def one_pressure_policy_a_pool(wish: RuleContext) -> Iterator[Problem]:
    """Two PressurePolicies would give the same node two watermarks."""
    yield from _one_a_pool(wish, wish.desired.pressures, "RC309")


def _one_a_pool(wish: RuleContext, policies: Sequence[Declared[Named]], code: str) -> Iterator[Problem]:
    claimed: dict[str, Declared[Named]] = {}
    for each in active(policies):
        doubly: dict[str, list[str]] = defaultdict(list)
        for pool in wish.pools_named(each.spec.pool_names):
            other = claimed.setdefault(pool.name, each)
            if other is not each:
                doubly[other.name].append(pool.name)
        for name, pools in sorted(doubly.items()):
            other = claimed[pools[0]]
            text = f"{each.kind}/{name} already applies to {_named(pools)}"
            remedy = f"see {wish.place(other, 'spec.poolNames')}; name each pool in only one {each.kind}"
            yield wish.problem(each, "spec.poolNames", (code, text, remedy))


def _named(pools: Sequence[str]) -> str:
    shown = ", ".join(pools[:3]) + (f" and {len(pools) - 3} more" if len(pools) > 3 else "")
    return f"the pool {shown}" if len(pools) == 1 else f"the pools {shown}"


def thresholds_below_targets(wish: RuleContext) -> Iterator[Problem]:
    """A node below the drain threshold must also be below the utilization target of scaling."""
    targets = {each.spec.pool_name: each for each in active(wish.desired.provisioners)}
    for drain in active(wish.desired.drains):
        threshold = drain.spec.utilization_threshold_percent
        for pool in wish.pools_named(drain.spec.pool_names):
            provisioner = targets.get(pool.name)
            if provisioner is None:
                continue
            target = provisioner.spec.min_gpu_utilization_percent
            if threshold >= target:
                text = (
                    f"utilizationThresholdPercent {threshold} must be below minGPUUtilizationPercent {target} "
                    f"of NodeProvisioner/{provisioner.name}"
                )
                remedy = f"see {wish.place(provisioner, 'spec.minGPUUtilizationPercent')}"
                remedy += f"; write at most {target - 1}" if target > 0 else "; no utilization is below 0"
                yield wish.problem(drain, "spec.utilizationThresholdPercent", ("RC304", text, remedy))


def room_for_the_largest_size(wish: RuleContext) -> Iterator[Problem]:
    """The maximum size of a NodeProvisioner must fit into its pool's limits."""
    for each in active(wish.desired.provisioners):
        pool = wish.desired.pool(each.spec.pool_name)
        if pool is None:
            continue
        gpus = pool.spec.devices.count
        for resource, per_node in (("nodes", 1), ("nvidia.com/gpu", gpus)):
            limit = pool.spec.limits.get(resource)
            needed = each.spec.max_size * per_node
            if limit is not None and limit.milli < needed * 1000:
                size = f"maxSize {each.spec.max_size}" + (f" with {gpus} GPUs per node" if resource != "nodes" else "")
                text = f"{size} needs {needed} {resource}, and the limits of GpuPool/{pool.name} allow {limit}"
                remedy = f"see {wish.place(pool, f'spec.limits.{resource}')}; lower maxSize, or raise the limit"
                yield wish.problem(each, "spec.maxSize", ("RC305", text, remedy))


# --- References must lead to objects.


def references_lead_somewhere(wish: RuleContext) -> Iterator[Problem]:
    """Every pool that a policy names must be declared."""
    desired = wish.desired
    named: list[tuple[Declared[object], list[str]]]
    for provisioner in desired.provisioners:
        yield from _pool(wish, provisioner, "spec.poolName", provisioner.spec.pool_name)
    named = [(each, each.spec.pool_names) for each in desired.drains]
    named += [(each, each.spec.pool_names) for each in desired.pressures]
    named += [(each, each.spec.pool_names) for each in desired.guards]
    for policy, names in named:
        for number, name in enumerate(names):
            yield from _pool(wish, policy, f"spec.poolNames[{number}]", name)


def other_references_lead_somewhere(wish: RuleContext) -> Iterator[Problem]:
    """The objects that a GpuClaim or ChangeApproval names may be declared elsewhere: a warning, if any are here."""
    named: list[tuple[Declared[Any], str, str, str | None]]
    named = [(claim, "spec.poolName", "GpuPool", claim.spec.pool_name) for claim in wish.claims]
    named += [(each, "spec.guardName", "ChangeGuard", each.spec.guard_name) for each in wish.approvals]
    for about, path, kind, name in named:
        if name is not None and any(declared == kind for declared, _ in wish.written):
            for problem in _reference(wish, about, path, (kind, name)):
                yield msgspec.structs.replace(problem, severity="warning")


def _pool(wish: RuleContext, about: Declared[object], path: str, name: str) -> Iterator[Problem]:
    if name != "*" or path == "spec.poolName":
        yield from _reference(wish, about, path, ("GpuPool", name))


def _reference(wish: RuleContext, about: Declared[object], path: str, title: tuple[str, str]) -> Iterator[Problem]:
    kind, name = title
    if title in wish.written or not wish.is_whole:
        return
    close = meant(name, [each for other, each in wish.written if other == kind])
    text = f'{path}: there is no {kind} "{name}"' + (f'; did you mean "{close}"?' if close else "")
    noun = "pool" if kind == "GpuPool" else "guard"
    problem = wish.problem(about, path, ("RC301", text, "" if close else f"declare the {noun}, or use another name"))
    yield msgspec.structs.replace(problem, field=path)


# --- Delays below the minimum that scaling enforces.


def scale_down_delays_are_kept(wish: RuleContext) -> Iterator[Problem]:
    """A node is removed at least a minute after it was tainted, so that pods already bound to it arrive first."""
    for each in wish.desired.provisioners:
        if each.spec.scale_down_delay.milliseconds < LEAST_DELAY_MS:
            least = f"{LEAST_DELAY_MS // 1_000}s"
            text = f"scaleDownDelay {each.spec.scale_down_delay} is less than {least}, and counts as {least}"
            yield wish.warning(each, "spec.scaleDownDelay", ("RC316", text, f"write {least} or more"))


# --- NodePool weights express the order of NodeProvisioners to Karpenter, as far as possible.


def ranks_fit_into_weights(wish: RuleContext) -> Iterator[Problem]:
    """Karpenter has 100 weights, which cannot express the order of more overlapping pools."""
    for group in overlapping(wish.desired):
        for pool in group[MOST : MOST + 1]:
            text = f"{len(group)} pools overlap, and Karpenter orders at most {MOST} NodePools by weight"
            remedy = "give pools for different pods different taints, or write a weight in each GpuPool"
            yield wish.problem(pool, "", ("RC311", text, remedy))


def pools_without_taints_have_no_weight(wish: RuleContext) -> Iterator[Problem]:
    """Among NodePools of equal weight, Karpenter chooses."""
    for pool in untainted(wish.desired):
        text = (
            f"GpuPool/{pool.name} has no taints, so its NodePool gets no weight (a weight would attract pods without "
        )
        text += "GPUs to the GPU nodes), and Karpenter does not know the order of the NodeProvisioner"
        remedy = "add a taint such as nvidia.com/gpu, or write a weight"
        yield wish.warning(pool, "spec.taints", ("RC317", text, remedy))


# --- The order of capacity types, which a NodePool cannot express.

# The order in which Karpenter prefers capacity types if a NodePool allows several.
_KARPENTERS: tuple[CapacityType, ...] = ("reserved", "spot", "on-demand")


def capacity_types_in_karpenters_order(wish: RuleContext) -> Iterator[Problem]:
    """A NodePool's capacity types are unordered. Only smart pods, each with one type, keep the policy's order."""
    for pool in wish.desired.pools:
        written = list(dict.fromkeys(pool.spec.capacity_types))
        preferred = [each for each in _KARPENTERS if each in written]
        if pool.spec.suspend or written == preferred:
            continue
        text = (
            f"Karpenter chooses the capacity type itself and prefers {', then '.join(preferred)}: the order "
            f"{', '.join(written)} holds only for pods that wait behind the gate gpu.scheduling/capacity"
        )
        remedy = f"give each capacity type a pool of its own, or write [{', '.join(preferred)}] to agree with Karpenter"
        yield wish.warning(pool, "spec.capacityTypes", ("RC315", text, remedy))
