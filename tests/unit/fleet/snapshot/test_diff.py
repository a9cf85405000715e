"""What is gone and what came between two sightings."""

from hypothesis import given
from hypothesis import strategies as some

from reconciler.fleet.snapshot.diff import changes


class Thing:
    """Equal to all others: only which object it is tells it apart."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing)

    def __hash__(self) -> int:
        return 0


def ids(things: list[Thing]) -> list[int]:
    return list(map(id, things))


@given(some.lists(some.integers(0, 60), unique=True), some.lists(some.integers(0, 60), unique=True), some.booleans())
def test_what_is_the_same_object_neither_went_nor_came(first: list[int], second: list[int], in_order: bool) -> None:
    things = [Thing() for _ in range(61)]
    if in_order:
        first, second = sorted(first), sorted(second)
    before, after = tuple(things[each] for each in first), tuple(things[each] for each in second)
    gone, came = changes(before, after)
    assert ids(gone) == [id(things[each]) for each in first if each not in second]
    assert ids(came) == [id(things[each]) for each in second if each not in first]


@given(some.sets(some.integers(0, 299), max_size=40), some.sets(some.integers(0, 299), max_size=40))
def test_of_many_things_those_few_are_found(lacking: set[int], replaced: set[int]) -> None:
    before = tuple(Thing() for _ in range(300))
    after = tuple(
        Thing() if number in replaced else each for number, each in enumerate(before) if number not in lacking
    )
    gone, came = changes(before, after)
    assert ids(gone) == [id(each) for number, each in enumerate(before) if number in lacking | replaced]
    assert len(came) == len(replaced - lacking)
    assert changes(before, before) == ([], [])
