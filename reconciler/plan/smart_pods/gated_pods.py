"""Requests for missing nodes: one smart pod for each node, at once if Karpenter can't see the waiting pods, else after
Karpenter had time to buy.
"""

import re
from collections.abc import Iterator

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.fleet.occupancy import NodeFacts
from reconciler.fleet.questions import fits
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import SmartPod
from reconciler.model.fields import LABEL_VALUE
from reconciler.model.instant import Instant, moment
from reconciler.model.plan.capacity import PoolShortfall, Purchase
from reconciler.model.plan.decision import Apply, CodeFacts, Decision, Preconditions, Ref, Taint
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.capacity.demand import unschedulable_since
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.capacity.requests import CapacityRequest, tag_of
from reconciler.plan.capacity.wanted_nodes import WantedNode
from reconciler.plan.draft import Draft
from reconciler.plan.smart_pods.context import SmartPodContext
from reconciler.plan.smart_pods.create import Body, affinity_of, manifest_of, memory_of, ruling_out, vram_of
from reconciler.plan.smart_pods.purchases import wanted_purchase
from reconciler.plan.smart_pods.reasons import (
    PLANNER,
    DrainedNodesReturn,
    KarpenterBuys,
    KarpenterRetries,
    NodePoolAwaited,
    SmartPodAsks,
    SmartPodAsksForLeast,
    SmartPodAsksForWarmNode,
    SmartPodAsksToo,
)

# --- Nodes whose drain this plan cancels: each replaces a node that pods wait for, so one node less is bought.
#
# Whether such a node fits the pods is decided by the next plan, in which the node stays: no search is done here.


class NodeRequests(msgspec.Struct, frozen=True):
    """Nodes of one pool to request, without the nodes that cancelled drains replace."""

    nodes: tuple[WantedNode, ...]
    spared: tuple[WantedNode, ...] = ()  # nodes that are not bought
    returned: int = 0


def requests_of(context: SmartPodContext) -> NodeRequests:
    """Nodes to request after cancelled drains. Nodes for demand are replaced first, in order, and then warm nodes."""
    returned = nodes_returned(context.draft, context.pool.name)
    nodes, spared = list[WantedNode](), list[WantedNode]()
    for each in context.wanted("now"):
        is_spared = len(spared) < returned and each.why in {"demand", "warmNodes"}
        (spared if is_spared else nodes).append(each)
    return NodeRequests(tuple(nodes), tuple(spared), returned)


def nodes_returned(draft: Draft, pool: str) -> int:
    """Number of nodes of the pool whose drain taint an action of this plan removes."""
    return sum(
        each.pool == pool
        and each.subject.kind == "Node"
        and isinstance(each.act, Taint)
        and each.act.key == names.DRAINING
        and each.act.value is None
        and not each.would
        for each in draft.claims
    )


KARPENTERS_TIME_MS = 30_000


def lacking(inputs: Inputs, draft: Draft) -> tuple[PoolShortfall, ...]:
    """Pools that lack nodes for visible pods, and since when."""
    before = {each.pool: each for each in inputs.memory.lacking}
    pools = {each.pool for each in draft.capacity.wanted if each.is_visible}
    return tuple(before.get(pool, PoolShortfall(pool, inputs.now)) for pool in sorted(pools))


class RequestDecisions(msgspec.Struct, frozen=True):
    """Requests of one pool, and nodes that are left to others or to a later plan."""

    decisions: tuple[Decision, ...] = ()
    purchases: tuple[Purchase, ...] = ()


def request_nodes(context: SmartPodContext, requests: NodeRequests) -> RequestDecisions:
    """Requests of one pool. Nodes that are left to Karpenter for now are reported by one hold."""
    decisions = list(_given_back(context, requests))
    if requests.nodes and not context.has_node_pool:
        decisions.append(context.hold(context.why(NodePoolAwaited(context.pool.name, len(requests.nodes)))))
        later = (wanted_purchase(context.pool, each, "node_pool") for each in requests.nodes)
        return RequestDecisions(tuple(decisions), tuple(later))
    taken = {each.request.key for each in context.requested if not each.pod.metadata.leaving}
    waiting: dict[type[KarpenterBuys | KarpenterRetries], list[Instant]] = {}
    purchases = []
    for each in requests.nodes:
        until = _left_to_karpenter_until(context, each)
        if until is not None and until > context.now:
            is_first = _karpenters_time(context, each) == until
            waiting.setdefault(KarpenterBuys if is_first else KarpenterRetries, []).append(until)
            purchases.append(wanted_purchase(context.pool, each, "karpenter", until))
            continue
        key = _key(each, taken)
        template = context.template(each.choice.instance_type)
        if key not in taken and template is not None:
            taken.add(key)
            made = _request_node(context, each, key, template)
            decisions.append(made)
            purchases.append(wanted_purchase(context.pool, each, "request", context.now, made.subject.name))
    for left_to_karpenter, moments in waiting.items():
        facts = left_to_karpenter(context.pool.name, len(moments))
        decisions.append(context.hold(context.why(facts), min(moments)))
    return RequestDecisions(tuple(decisions), tuple(purchases))


def _given_back(context: SmartPodContext, requests: NodeRequests) -> Iterator[Decision]:
    if requests.spared:
        facts = DrainedNodesReturn(context.pool.name, len(requests.spared), requests.returned)
        yield context.hold(context.why(facts))


def _left_to_karpenter_until(context: SmartPodContext, wanted: WantedNode) -> Instant | None:
    """Until when the node is left to Karpenter; None if no pod is visible. A launch option that failed for a smart pod
    is not requested again while Karpenter tries: when capacity returns, Karpenter would buy for both.
    """
    until = _karpenters_time(context, wanted)
    failed = [each.until for each in context.outlook.failed if LaunchOption.of(each) == wanted.choice]
    return None if until is None else max([until, *failed])


def _karpenters_time(context: SmartPodContext, wanted: WantedNode) -> Instant | None:
    """End of the time that Karpenter has to buy. The time starts again with each machine that Karpenter buys."""
    since = [instant for pod in wanted.pods if (instant := unschedulable_since(pod)) is not None]
    if not since:
        return None
    claims = (*context.fleet.claims_of(context.pool.name), *context.launching_elsewhere)
    bought = [(moment(each.metadata.creation_timestamp) or Instant(0)) for each in claims]
    return Instant(max(context.lacking_since, *since, *bought) + KARPENTERS_TIME_MS)


def _key(wanted: WantedNode, taken: set[str]) -> str:
    if wanted.pods:
        return min(pod.metadata.uid for pod in wanted.pods)
    return next(key for number in range(len(taken) + 1) if (key := f"{wanted.why}/{number}") not in taken)


def _request_node(context: SmartPodContext, wanted: WantedNode, key: str, template: SmartPod) -> Decision:
    request = _request(context, wanted, key)
    is_alive = any(node.instance_type == request.instance_type for node in context.fleet.pool(context.pool.name).nodes)
    memory = memory_of(context.pool.spec, request, wanted, is_alive)
    body = manifest_of(template, request, wanted, memory, len(context.outlook.failed))
    body = ruling_out(body, _nodes_that_would_take(context, body, request))
    subject = Ref("Pod", body["metadata"]["namespace"], request.name)
    act = Apply(manifest=msgspec.json.encode(body, order="sorted").decode(), presumes=Preconditions(absent=True))
    return Decision(PLANNER, subject, act, context.why(_request_facts(wanted)), context.pool.name)


def _request(context: SmartPodContext, wanted: WantedNode, key: str) -> CapacityRequest:
    pool, choice, pods = context.pool, wanted.choice, wanted.pods
    count = max(1, sum(map(context.fleet.gpu_requests.of, pods))) if pods else pool.spec.devices.count
    return CapacityRequest(
        key=key,
        pool=pool.name,
        model=pool.spec.devices.model,
        count=count,
        why=wanted.why,
        instance_type=choice.instance_type,
        capacity_type=choice.capacity_type,
        zone=choice.zone,
        vram=str(vram_of(pool.spec, count)),
        node_selector=dict(pair for pod in pods for pair in sorted(pod.spec.node_selector.items())),
        node_affinity=affinity_of(pods),
        pods=tuple(sorted(pod.metadata.uid for pod in pods)),
    )


def _request_facts(wanted: WantedNode) -> CodeFacts:
    pool, choice, pods = wanted.pool, wanted.choice, len(wanted.pods)
    if wanted.why == "warmNodes":
        return SmartPodAsksForWarmNode(pool, choice)
    if not pods:
        return SmartPodAsksForLeast(pool, choice)
    if wanted.is_visible:
        return SmartPodAsksToo(pool, pods, KARPENTERS_TIME_MS // 1000, choice)
    return SmartPodAsks(pool, pods, choice)


def _nodes_that_would_take(context: SmartPodContext, body: Body, request: CapacityRequest) -> tuple[str, ...]:
    """Hostname labels of the pool's nodes that the smart pod fits on now. The smart pod must cause a new node, so these
    nodes are excluded. Computed once for equal smart pods.
    """
    alike = msgspec.json.encode(body["spec"], order="sorted").replace(tag_of(request.name).encode(), b"")
    lines = context.ruled_out.get(alike)
    if lines is None:
        pod, taken = msgspec.convert(body, Pod), context.fleet.occupancy.gpus
        nodes = context.fleet.pool(context.pool.name).nodes
        names_of = (
            each.name
            for each in nodes
            if (
                each.gpus - taken.get(each.name, 0) >= request.count
                and not fits(context.fleet.snapshot, pod, each.name)
            )
            or _looks_free(context.fleet, each, request.count)
        )
        lines = context.ruled_out[alike] = tuple(label for name in names_of for label in _hostname(context, name))
    return lines


def _looks_free(fleet: Fleet, node: NodeFacts, gpus: int) -> bool:
    """Whether the scheduler would see room that GpuClaims and Leases use: the scheduler knows only requests."""
    if not fleet.gpu_requests.counts and not fleet.lent:
        return False
    asked, pods = fleet.occupancy.gpus.get(node.name, 0), fleet.pods_on(node.name)
    requested = sum(pod.gpus for pod in pods if not pod.is_finished)
    return max(asked, fleet.lent.get(node.name, 0)) > requested and node.gpus - requested >= gpus


def _hostname(context: SmartPodContext, name: str) -> Iterator[str]:
    """Hostname label of a node, which may differ from the node's name. Invalid label values are left out, because the
    API server would refuse the smart pod.
    """
    node = context.fleet.node(name)
    label = node.metadata.labels.get(names.HOSTNAME, name) if node is not None else name
    if re.fullmatch(LABEL_VALUE.pattern, label):
        yield label
