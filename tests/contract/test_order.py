"""What comes after what, and how one that fails leaves the others, on an imagined cluster and on a real one."""

from reconciler.model import names
from reconciler.model.plan.decision import Act, Annotate, Decision, Hold, Outcome, Preconditions, Ref
from tests.contract import objects
from tests.contract.ground import Ground, decision
from tests.unit.plan.some_reasons import some_reason


def annotate(value: str = "yes", stale: bool = False) -> Act:
    presumes = Preconditions(resource_version="1") if stale else Preconditions()
    return Annotate(annotations=((names.EVICT_AT, value),), presumes=presumes)


def pods(ground: Ground, name: str, count: int) -> list[Ref]:
    return [ground.put(objects.waiting(f"{name}-{number}")) for number in range(count)]


def results(outcomes: list[Outcome]) -> dict[str, str]:
    found: dict[str, str] = {each.subject.name: each.result for each in outcomes}
    assert len(found) == len(outcomes), "one outcome each"
    return found


def test_one_that_fails_stops_no_other(ground: Ground, name: str) -> None:
    first, second, third = pods(ground, name, 3)
    decisions = [decision(first, annotate()), decision(second, annotate(stale=True)), decision(third, annotate())]
    assert results(ground.apply(decisions)) == {first.name: "done", second.name: "stale", third.name: "done"}
    # Run again, it finishes what was left, and repeats nothing.
    written = ground.writes
    again = [decision(each, annotate()) for each in (first, second, third)]
    assert set(results(ground.apply(again)).values()) == {"done"}
    assert ground.writes == written + 1


def test_what_comes_after_another_waits_for_it(ground: Ground, name: str) -> None:
    first, second, third = pods(ground, name, 3)
    chain = [
        decision(third, annotate(), after=(second,)),
        decision(second, annotate(), after=(first,)),
        decision(first, annotate()),
    ]
    outcomes = ground.apply(chain)
    assert [each.subject.name for each in outcomes] == [first.name, second.name, third.name]
    assert set(results(outcomes).values()) == {"done"}


def test_what_is_so_already_counts_as_done(ground: Ground, name: str) -> None:
    first, second = pods(ground, name, 2)
    ground.apply([decision(first, annotate())])
    outcomes = ground.apply([decision(first, annotate()), decision(second, annotate(), after=(first,))])
    assert results(outcomes) == {first.name: "done", second.name: "done"}


def test_what_comes_after_one_that_was_not_done_is_not_begun(ground: Ground, name: str) -> None:
    first, second, third, free = pods(ground, name, 4)
    decisions = [
        decision(first, annotate(stale=True)),
        decision(second, annotate(), after=(first, free)),
        decision(third, annotate(), after=(second,)),
        decision(free, annotate()),
    ]
    outcomes = ground.apply(decisions)
    assert results(outcomes) == {first.name: "stale", second.name: "stale", third.name: "stale", free.name: "done"}
    told = {each.subject.name: each.detail for each in outcomes}
    assert told[second.name] == f"it depends on {first.title}, which was not done"
    assert told[third.name] == f"it depends on {second.title}, which was not done"
    assert names.EVICT_AT not in (ground.get(second) or {})["metadata"]["annotations"]


def test_what_comes_after_one_that_is_held_or_only_would_be_done_is_not_begun(ground: Ground, name: str) -> None:
    held, would, one, other = pods(ground, name, 4)
    decisions = [
        Decision("contract", held, Hold(), some_reason("Contract")),
        decision(would, annotate(), would=True),
        decision(one, annotate(), after=(held,)),
        decision(other, annotate(), after=(would,)),
    ]
    assert results(ground.apply(decisions)) == {one.name: "stale", other.name: "stale"}


def test_a_circle_is_never_begun(ground: Ground, name: str) -> None:
    first, second = pods(ground, name, 2)
    written = ground.writes
    circle = [decision(first, annotate(), after=(second,)), decision(second, annotate(), after=(first,))]
    assert results(ground.apply(circle)) == {first.name: "stale", second.name: "stale"}
    assert ground.writes == written


class FallsAfter:
    """A fence that holds for so many questions, and never again."""

    def __init__(self, count: int) -> None:
        self.left = count

    def holds(self) -> bool:
        self.left -= 1
        return self.left >= 0


def test_when_the_fence_falls_what_is_left_is_not_begun(ground: Ground, name: str) -> None:
    refs = pods(ground, name, 6)
    written = ground.writes
    chain = [decision(each, annotate(), after=tuple(refs[:number])) for number, each in enumerate(refs)]
    outcomes = ground.apply(chain, FallsAfter(3))
    done = [each.subject for each in outcomes if each.result == "done"]
    assert 0 < len(done) < len(refs)
    assert ground.writes == written + len(done)
    noted = [each for each in refs if names.EVICT_AT in (ground.get(each) or {})["metadata"]["annotations"]]
    assert noted == done


def test_where_walking_stops_nothing_further_begins(ground: Ground, name: str) -> None:
    first, second = pods(ground, name, 2)
    act = Annotate(annotations=(("gpu.scheduling/waits-for", "c"),))
    written = ground.writes
    walk = ground.begin([decision(first, act), decision(second, act, after=(first,))])
    assert ground.writes == written, "nothing is sent before it is walked"
    assert next(walk).subject == first
    walk.close()
    assert ground.writes == written + 1
    assert "gpu.scheduling/waits-for" not in (ground.get(second) or {})["metadata"]["annotations"]
