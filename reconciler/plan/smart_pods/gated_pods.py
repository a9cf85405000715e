"""One smart pod for each node that is really missing: asked for at once where Karpenter can't see who waits, and where
it does, once it has had its time."""

import re
from collections.abc import Iterator

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.fleet.node_facts import NodeFacts
from reconciler.fleet.questions import fits
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import SmartPod
from reconciler.model.fields import LABEL_VALUE
from reconciler.model.instant import Instant, moment
from reconciler.model.plan.action import Apply, Hold, Preconditions, Ref
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.pool_shortfall import PoolShortfall
from reconciler.model.plan.purchase import Purchase, Why
from reconciler.model.plan.reason import CodeFacts, Reason
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.capacity.request import Request, tag_of
from reconciler.plan.capacity.waiting import unschedulable_since
from reconciler.plan.capacity.wanted_node import Wanted
from reconciler.plan.draft import Draft, UnmetNodes
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
from reconciler.plan.smart_pods.returned_nodes import Wanting
from reconciler.plan.smart_pods.turn import SmartPodContext

KARPENTERS_TIME_MS = 30_000


def lacking(inputs: Inputs, draft: Draft) -> tuple[PoolShortfall, ...]:
    """Pools that lack nodes for pods that Karpenter sees, and since when."""
    before = {each.pool: each for each in inputs.memory.lacking}
    pools = {each.pool for each in draft.missing if any(wanted.is_seen for wanted in each.wanted)}
    return tuple(before.get(pool, PoolShortfall(pool, inputs.now)) for pool in sorted(pools))


class Asked(msgspec.Struct, frozen=True):
    """What is asked for in one pool, and what is left to others or to a later plan."""

    decisions: tuple[Decision, ...] = ()
    purchases: tuple[Purchase, ...] = ()


def asking(turn: SmartPodContext, wanted: Wanting) -> Asked:
    """For one pool; whoever is Karpenter's for now is told of once."""
    told = list(_given_back(turn, wanted))
    nodes = [(missing, each) for missing in wanted.missing for each in missing.wanted]
    if nodes and not turn.has_node_pool:
        told.append(_hold(turn, NodePoolAwaited(turn.pool.name, len(nodes))))
        later = (wanted_purchase(turn.pool, each, "node_pool", missing.why, None) for missing, each in nodes)
        return Asked(tuple(told), tuple(later))
    taken = {each.request.key for each in turn.requested if not each.pod.metadata.leaving}
    waiting: dict[type[KarpenterBuys | KarpenterRetries], list[Instant]] = {}
    purchases = []
    for missing, each in nodes:
        until = _seen_until(turn, each)
        if until is not None and until > turn.now:
            is_first = _karpenters_time(turn, each) == until
            waiting.setdefault(KarpenterBuys if is_first else KarpenterRetries, []).append(until)
            purchases.append(wanted_purchase(turn.pool, each, "karpenter", missing.why, until))
            continue
        key = _key(missing, each, taken)
        template = turn.template(each.choice.instance_type)
        if key not in taken and template is not None:
            taken.add(key)
            made = _asked(turn, each, (missing.why, key), template)
            told.append(made)
            purchases.append(wanted_purchase(turn.pool, each, "request", missing.why, turn.now, made.subject.name))
    for left_to_karpenter, moments in waiting.items():
        told.append(_hold(turn, left_to_karpenter(turn.pool.name, len(moments)), min(moments)))
    return Asked(tuple(told), tuple(purchases))


def _given_back(turn: SmartPodContext, wanted: Wanting) -> Iterator[Decision]:
    if wanted.spared:
        yield _hold(turn, DrainedNodesReturn(turn.pool.name, len(wanted.spared), wanted.returned))


def _hold(turn: SmartPodContext, facts: CodeFacts, until: Instant | None = None) -> Decision:
    why = Reason(facts, turn.pool.origin())
    return Decision(PLANNER, Ref("GpuPool", "", turn.pool.name), Hold(until), why, turn.pool.name)


def _seen_until(turn: SmartPodContext, wanted: Wanted) -> Instant | None:
    """Until when Karpenter is left to buy by itself; None where it does not see them. What a smart pod
    did not get either is not asked for again beside it: once there is stock, it would buy for both."""
    until = _karpenters_time(turn, wanted)
    failed = [each.until for each in turn.outlook.failed if LaunchOption.of(each) == wanted.choice]
    return None if until is None else max([until, *failed])


def _karpenters_time(turn: SmartPodContext, wanted: Wanted) -> Instant | None:
    """When Karpenter has had its time; it begins again with each machine that Karpenter buys."""
    since = [found for pod in wanted.pods if (found := unschedulable_since(pod)) is not None]
    if not since:
        return None
    claims = (*turn.fleet.claims_of(turn.pool.name), *turn.launching_elsewhere)
    bought = [(moment(each.metadata.creation_timestamp) or Instant(0)) for each in claims]
    return Instant(max(turn.lacking_since, *since, *bought) + KARPENTERS_TIME_MS)


def _key(missing: UnmetNodes, wanted: Wanted, taken: set[str]) -> str:
    if wanted.pods:
        return min(pod.metadata.uid for pod in wanted.pods)
    return next(key for number in range(len(taken) + 1) if (key := f"{missing.why}/{number}") not in taken)


def _asked(turn: SmartPodContext, wanted: Wanted, what_for: tuple[Why, str], template: SmartPod) -> Decision:
    request = _request(turn, wanted, *what_for)
    is_alive = any(node.instance_type == request.instance_type for node in turn.fleet.pool(turn.pool.name).nodes)
    memory = memory_of(turn.pool.spec, request, wanted, is_alive)
    body = manifest_of(template, request, wanted, memory, len(turn.outlook.failed))
    body = ruling_out(body, _nodes_that_would_take(turn, body, request))
    subject = Ref("Pod", body["metadata"]["namespace"], request.name)
    act = Apply(manifest=msgspec.json.encode(body, order="sorted").decode(), presumes=Preconditions(absent=True))
    return Decision(PLANNER, subject, act, _why(turn, wanted, request.why), turn.pool.name)


def _request(turn: SmartPodContext, wanted: Wanted, why: Why, key: str) -> Request:
    pool, choice, pods = turn.pool, wanted.choice, wanted.pods
    count = max(1, sum(map(turn.fleet.asked_gpus.of, pods))) if pods else pool.spec.devices.count
    return Request(
        key=key,
        pool=pool.name,
        model=pool.spec.devices.model,
        count=count,
        why=why,
        instance_type=choice.instance_type,
        capacity_type=choice.capacity_type,
        zone=choice.zone,
        vram=str(vram_of(pool.spec, count)),
        node_selector=dict(pair for pod in pods for pair in sorted(pod.spec.node_selector.items())),
        node_affinity=affinity_of(pods),
        pods=tuple(sorted(pod.metadata.uid for pod in pods)),
    )


def _why(turn: SmartPodContext, wanted: Wanted, why: Why) -> Reason:
    return Reason(_asked_facts(turn.pool.name, wanted, why), turn.pool.origin())


def _asked_facts(pool: str, wanted: Wanted, why: Why) -> CodeFacts:
    choice, pods = wanted.choice, len(wanted.pods)
    if why == "warmNodes":
        return SmartPodAsksForWarmNode(pool, choice)
    if not pods:
        return SmartPodAsksForLeast(pool, choice)
    if wanted.is_seen:
        return SmartPodAsksToo(pool, pods, KARPENTERS_TIME_MS // 1000, choice)
    return SmartPodAsks(pool, pods, choice)


def _nodes_that_would_take(turn: SmartPodContext, body: Body, request: Request) -> tuple[str, ...]:
    """Hostname labels of nodes of the pool on which the smart pod would fit as they are: it is to bring another. Asked
    once for all that are alike."""
    alike = msgspec.json.encode(body["spec"], order="sorted").replace(tag_of(request.name).encode(), b"")
    found = turn.ruled_out.get(alike)
    if found is None:
        pod, taken = msgspec.convert(body, Pod), turn.fleet.occupancy.gpus
        nodes = turn.fleet.pool(turn.pool.name).nodes
        names_of = (
            each.name
            for each in nodes
            if (each.gpus - taken.get(each.name, 0) >= request.count and not fits(turn.fleet.what_if, pod, each.name))
            or _looks_free(turn.fleet, each, request.count)
        )
        found = turn.ruled_out[alike] = tuple(label for name in names_of for label in _hostname(turn, name))
    return found


def _looks_free(fleet: Fleet, node: NodeFacts, gpus: int) -> bool:
    """Whether the scheduler would see room there which GpuClaims and Leases take: it knows requests alone."""
    if not fleet.asked_gpus.counts and not fleet.lent:
        return False
    asked, pods = fleet.occupancy.gpus.get(node.name, 0), fleet.pods_on(node.name)
    requested = sum(pod.gpus for pod in pods if not pod.is_finished)
    return max(asked, fleet.lent.get(node.name, 0)) > requested and node.gpus - requested >= gpus


def _hostname(turn: SmartPodContext, name: str) -> Iterator[str]:
    """The hostname label of a node, which may differ from its name. A value that is no label value would make the API
    server refuse the smart pod."""
    node = turn.fleet.node(name)
    label = node.metadata.labels.get(names.HOSTNAME, name) if node is not None else name
    if re.fullmatch(LABEL_VALUE.pattern, label):
        yield label
