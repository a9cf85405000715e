"""The story of a simulation in a few lines: what came into force, and what the controller did about it."""

from collections import Counter
from collections.abc import Iterator

from reconciler.model.human_time import clock
from reconciler.model.instant import Instant
from reconciler.model.revision import short_revision
from reconciler.report.blocks import Detail, Item, ItemList, Tone
from reconciler.report.simulation.simulated import Simulated, TimelineStep
from reconciler.report.wording import counted, listed

MOST_MOMENTS = 40


def story(simulated: Simulated) -> ItemList | None:
    """The moments at which something was done or went wrong, the first ones."""
    moments = sorted(
        [*_revised(simulated), *_happened_to(simulated), *_broken(simulated), *_steps(simulated)],
        key=lambda each: each[0],
    )
    if not moments:
        return None
    items = [item for _, item in moments[:MOST_MOMENTS]]
    if len(moments) > MOST_MOMENTS:
        items.append(Item("…", f"{len(moments) - MOST_MOMENTS} more moments: {_in_json(simulated)}"))
    return ItemList(tuple(items))


def _in_json(simulated: Simulated) -> str:
    """What of it is told there."""
    writes, happenings = sum(each.did_more for each in simulated.steps), simulated.happenings_more
    left_out = [counted(writes, "write")] if writes else []
    if happenings:
        left_out.append("1 fault or edit" if happenings == 1 else f"{happenings} faults and edits")
    return f"-o json has them, but for {listed(left_out)}" if left_out else "-o json has them all"


_Moment = tuple[tuple[Instant, int], Item]


def _revised(simulated: Simulated) -> Iterator[_Moment]:
    for each in simulated.revisions[1:]:
        revision = short_revision(each.revision) or "other policies"
        yield (each.at, 0), Item("~", f"{clock(each.at, simulated.start)}  {revision} comes into force", tone="warn")


def _happened_to(simulated: Simulated) -> Iterator[_Moment]:
    for each in simulated.happenings:
        yield (each.at, 0), Item("*", f"{clock(each.at, simulated.start)}  {each.text}", tone="warn")


def _broken(simulated: Simulated) -> Iterator[_Moment]:
    for each in simulated.broken:
        title = f"{clock(each.at, simulated.start)}  {each.rule}"
        details = (Detail(each.sentence), Detail(f"by the event: {each.event}"))
        yield (each.at, 2), Item("!", title, details=details, tone="bad")


def _steps(simulated: Simulated) -> Iterator[_Moment]:
    before: Instant = simulated.start
    for step in simulated.steps:
        if step.did or step.evicted or step.lost:
            at = step.did[0].at if step.did else before
            title = f"{clock(at, simulated.start)}  {', '.join(_happened(step))}"
            details = tuple(Detail(each) for each in _did(step))
            yield (at, 1), Item("!" if step.evicted or step.lost else "+", title, details=details, tone=_tone(step))
        before = step.at


def _tone(step: TimelineStep) -> Tone:
    return "bad" if step.evicted or step.lost else "good"


def _happened(step: TimelineStep) -> Iterator[str]:
    if number := len(step.did) + step.did_more:
        yield counted(number, "write")
    if step.evicted:
        yield f"{counted(step.evicted, 'pod')} evicted"
    if step.lost:
        yield f"{counted(step.lost, 'pod')} lost"
    if step.bought:
        yield f"{counted(step.bought, 'node')} bought"
    if step.removed:
        yield f"{counted(step.removed, 'node')} removed"


def _did(step: TimelineStep) -> Iterator[str]:
    """Alike ones together."""
    alike = Counter((each.verb, each.subject.partition("/")[0], each.reason) for each in step.did)
    for (verb, kind, reason), number in alike.items():
        one = next(each.subject for each in step.did if (each.verb, each.reason) == (verb, reason))
        what = one if number == 1 else f"{number} {kind}s"
        yield f"{verb} {what}: {reason}"
    if step.did_more:
        yield f"and {counted(step.did_more, 'more write')}"
