"""Why a node is, or is not, scaled down."""

from collections.abc import Iterator, Mapping

from reconciler.model.instant import Instant, clock, timestamp
from reconciler.model.plan.decision import Reason
from reconciler.model.plan.evaluation import SizeEvaluation
from reconciler.plan.explain.scale_down import (
    Keeper,
    ScaleDownForecast,
    Stay,
    StayCause,
    deciding_keys,
    keepers_of,
    marked_nodes,
    stay_of,
)
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.frozen import Freeze
from reconciler.plan.guards.observing import observation_of
from reconciler.plan.scaling.marks import HARD_AHEAD_MS
from reconciler.plan.scaling.pool_view import KeyName
from reconciler.plan.scaling.reasons import TargetGrows, TargetSize
from reconciler.plan.scaling.size import KeptIf, decide_size, kept_if
from reconciler.plan.scaling.words import KEPT_WHILE
from reconciler.report.explain.about import Row, placed
from reconciler.report.sentences import fact_words, sentence, words_of
from reconciler.report.wording import counted


def why_rows(node: ScaleDownForecast) -> Iterator[Row]:
    """For a node that is scaled down: why, why this node, and what would prevent it. For another node: why not."""
    if node.own is None or node.is_still:
        yield from _stays(node)
        return
    use, evaluated = node.evaluated.use, node.evaluated
    gone = min(evaluated.surplus, len(node.empty))
    text = f"{use.busy_nodes} of {counted(use.nodes, 'node')} busy: {size_words(evaluated)}"
    go = "would be deleted" if node.observation else "is deleted" if gone == 1 else "are deleted"
    yield "why", f"{text}, so {gone} of the {len(node.empty)} empty {go}"
    by = decide_size(use, node.wish.spec).by
    yield "why", f"{by}, {placed(node.wish.origin(f'spec.{by}'))}"
    yield from (("prevented by", _keeper_words(each)) for each in keepers_of(node))
    if node.rank:
        yield "why this one", f"{_ordinal(node.rank)} in order: {_order_words(node)}"
        if kept := ", or ".join(_kept(node)):
            yield "kept if", kept


def _keeper_words(keeper: Keeper) -> str:
    match keeper.by:
        case Reason():
            return sentence(keeper.by)
        case Freeze():
            return f"{keeper.by.scope_text} is frozen {keeper.by.until_text}"
        case pool:
            return f"GpuPool/{pool.name} is suspended, {placed(pool.origin('spec.suspend'))}"


def kept_words(node: ScaleDownForecast) -> str:
    """What prevents deletion of a marked node, as a clause after "while"."""
    return " and ".join(KEPT_WHILE[each.cause] for each in keepers_of(node))


def stop_rows(node: ScaleDownForecast) -> Iterator[Row]:
    """The command that keeps the node."""
    if node.own is not None and not node.is_still and not node.observation:
        yield "to stop it", f'reconciler freeze node/{node.node.name} --for 4h --reason "..."'


def _stays(node: ScaleDownForecast) -> Iterator[Row]:
    surplus, by = node.evaluated.surplus, f"NodeProvisioner/{node.wish.name} {placed(node.wish.origin())}"
    if (stay := stay_of(node)) is not None:
        yield "scaled down", f"{_stay_words(stay)} {by}"
    elif not node.rank:
        return
    elif surplus:
        go = "would be deleted" if node.observation else "is to be deleted" if surplus == 1 else "are to be deleted"
        are = f"of {counted(len(node.empty), 'empty node')} {go}"
        yield "scaled down", f"{surplus} {are}; this node is {_ordinal(node.rank)} in order; {by}"
    else:
        yield "scaled down", f"no: {size_words(node.evaluated)}; {by}"


_STAYS: Mapping[StayCause, str] = {
    StayCause.STANDS_STILL: "not in the current state, regardless of the target size of",
    StayCause.DRAINING: "not while the node is drained: the drain deletes the node;",
    StayCause.BUSY: "not while a pod runs on the node: only empty nodes are removed by",
    StayCause.LENT: "not while a GPU of the node is lent: only empty nodes are removed by",
    StayCause.LEFT_TO_DRAIN: "not while the node is not ready: DrainPolicy/{policy} removes the node instead of",
    StayCause.SETTLING: "not before {until}: the node is new and settles until then;",
    StayCause.WINDOW_CLOSED: "not before {until}: until then no window is open;",
}


def _stay_words(stay: Stay) -> str:
    """The reason, followed by the name of the NodeProvisioner."""
    if stay.cause is StayCause.WINDOW_CLOSED and stay.until is None:
        return "never: no window ever opens;"
    until = _at(stay.until) if stay.until is not None else ""
    return _STAYS[stay.cause].format(until=until, policy=stay.policy)


def size_words(evaluated: SizeEvaluation) -> str:
    """Reason of the target size, as a clause."""
    match evaluated.reason.facts:
        case TargetSize(why=why) | TargetGrows(why=why):
            return fact_words(why)
        case _:
            return words_of(evaluated.reason)


_ORDER: Mapping[KeyName, str] = {
    "readiness": "unready first",
    "price": "more expensive first",
    "priced": "unknown price last",
    "name": "then by name",
}


def _order_words(node: ScaleDownForecast) -> str:
    bought = f" ({node.node.capacity_type})" if node.node.capacity_type else ""
    words = [f"{_ORDER[each.name]}{bought if each.name == 'price' else ''}" for each in deciding_keys(node)]
    return ", ".join(words).removeprefix("then ") or "the only empty node"


def _kept(node: ScaleDownForecast) -> Iterator[str]:
    own, spec, use = node.own, node.wish.spec, node.evaluated.use
    if own is not None and not node.is_hard:
        soft = f" (the taint is soft until {_at(Instant(own.at - HARD_AHEAD_MS))})" if own.at is not None else ""
        yield f"a pod is scheduled to the node{soft}"
    if node.evaluated.pods:
        return
    found: KeptIf = kept_if(node.evaluated, spec, node.rank)
    if found.gpus_used is not None:
        more = found.gpus_used - use.gpus_used
        verb = "is" if more == 1 else "are"
        yield f"{counted(more, 'more GPU')} {verb} in use ({found.gpus_used}, now {use.gpus_used})"
    if found.percent is not None:
        yield f"minGPUUtilizationPercent is {found.percent}{' or less' if found.percent else ''}"
    if found.unutilized is not None and spec.min_unutilized_gpu_nodes:
        yield f"minUnutilizedGPUNodes is {found.unutilized} or more"


def _at(moment: Instant) -> str:
    """The time of day, to the second."""
    return f"{timestamp(moment)[11:19]}Z"


def _ordinal(number: int) -> str:
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in {11, 12, 13} else last}"


def marked_words(scene: PlanningResult, evaluated: SizeEvaluation) -> str:
    """Number of marked nodes, and when they are deleted."""
    marked = marked_nodes(scene, evaluated)
    words = [_deleted_words(scene, evaluated.pool, marked.times)] if marked.times else []
    words += [f"{counted(marked.still, 'node')} marked, but not deleted in the current state"] if marked.still else []
    return "; ".join(words)


def _deleted_words(scene: PlanningResult, pool: str, times: tuple[Instant, ...]) -> str:
    first, last = clock(min(times), scene.inputs.now), clock(max(times), scene.inputs.now)
    when = first if first == last else f"{first} to {last}"
    observation = observation_of(scene.inputs, pool)
    deleted = "deleted" if observation is None else f"to be deleted, if {observation.unless},"
    return f"{counted(len(times), 'node')}, {deleted} at {when} if still empty"
