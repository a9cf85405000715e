"""What is promised of drains, judged by how a story went: told in sentences where it is not so."""

from collections.abc import Callable, Iterator

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import instant
from reconciler.simulate.runner.play import Play
from tests.stages.stories.drained.oracle import AWAITED_MS, Oracle
from tests.stages.stories.drained.witness import Outcome, outcome_of

_REST_MS = 60 * 60_000


def faults_of(outcome: Outcome) -> list[str]:
    """Nothing, where all is as promised."""
    return [told for judge in _judges() for told in judge(outcome)]


def broken_promises(outcome: Outcome) -> frozenset[str]:
    """Which were not kept, by the names of their judges: a smaller story fails with other figures."""
    return frozenset(judge.__name__.strip("_") for judge in _judges() if any(judge(outcome)))


def _broken_by(play: Play) -> frozenset[str]:
    try:
        return broken_promises(outcome_of(play))
    except Exception as fault:  # noqa: BLE001 - whatever breaks it off
        return frozenset({type(fault).__name__})


def within(whole: Play) -> Callable[[Play], frozenset[str]]:
    """A story that ends sooner has not come to rest yet: what it fails then is another matter."""
    return lambda play: _broken_by(play) if play.scenario.duration == whole.scenario.duration else frozenset()


def _judges() -> tuple[Callable[[Outcome], Iterator[str]], ...]:
    return (_unsafe, _restarts, _left_behind, _half_done, _restless)


def _unsafe(outcome: Outcome) -> Iterator[str]:
    yield from (f"{each.rule}: {each.sentence}" for each in outcome.simulated.broken)
    yield from outcome.simulated.troubles


def _restarts(outcome: Outcome) -> Iterator[str]:
    yield from outcome.changed


def _left_behind(outcome: Outcome) -> Iterator[str]:
    """In the end no node is there that could go."""
    yield from Oracle(outcome.last).left_behind()


def _half_done(outcome: Outcome) -> Iterator[str]:
    """Nothing that was begun is unfinished for long, and no node waits for its time that has come long ago."""
    last = outcome.last
    if last.memory.drained.batch is not None:
        yield f"a batch is there still: {last.memory.drained.batch.nodes}"
    oracle = Oracle(last)
    slots_are_free = not oracle.slots_are_taken()
    for node in last.observed.nodes:
        may_begin = slots_are_free and not oracle.rests(node.pool)
        for taint in () if node.metadata.leaving else node.spec.taints:
            if taint.key == names.DRAINING and last.now - 1_000 * int(taint.value) > _REST_MS:
                yield f"{node.name} is being drained still, since {taint.value}"
            if taint.key == names.DRAIN_CANDIDATE and may_begin and last.now - 1_000 * int(taint.value) > AWAITED_MS:
                yield f"{node.name} has been a candidate since {taint.value}"


def _is_of_late_job(pod: Pod, since: int) -> bool:
    owner = pod.metadata.controller
    return owner is not None and owner.kind == "Job" and instant(pod.metadata.creation_timestamp) > since - _REST_MS


def _restless(outcome: Outcome) -> Iterator[str]:
    """Nothing is moved any more in the last hour, unless windows let it wait until then, or Jobs come and go."""
    since = outcome.play.end - _REST_MS
    late = [each for each in outcome.moved if each > since]
    windows = any(each.spec.windows for each in outcome.last.desired.drains)
    if late and not windows and not any(_is_of_late_job(pod, since) for pod in outcome.last.observed.pods):
        yield f"{len(late)} pods were moved in the last hour, and {len(outcome.moved)} in all"
