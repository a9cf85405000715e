"""What would be done in pools that are only observed, and what would have to be for that: in words, by its cause."""

from collections import Counter
from collections.abc import Iterator, Mapping

from reconciler.plan.guards.observing import Observation


def conditions(supposed: Mapping[Observation, int]) -> Iterator[tuple[int, str]]:
    """How many decisions, and the clause that follows "if"; pools with the same causes together."""
    alike: dict[tuple[bool, bool, bool], Counter[Observation]] = {}
    for each, number in supposed.items():
        alike.setdefault((each.by_mode, each.is_unadopted, bool(each.environment)), Counter())[each] += number
    for causes, group in alike.items():
        only = next(iter(group))
        yield group.total(), only.unless if len(group) == 1 else _of_several(*causes)


def _of_several(by_mode: bool, is_unadopted: bool, is_kept: bool) -> str:
    parts = (
        (by_mode, "their GpuPools were in mode Enforce"),
        (is_unadopted, "their NodePools, which someone else made, were adopted"),
        (is_kept, "their NodePools were not kept by other environments"),
    )
    return " and ".join(words for applies, words in parts if applies)


def marked(heading: str, observation: Observation | None) -> str:
    """A heading of what would be done, with why it is not."""
    return f"{heading} (would: {observation.causes_text})" if observation is not None else heading
