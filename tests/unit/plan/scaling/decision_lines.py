"""What a plan decides for provisioners, a line for all nodes that share it, as tests/cases/scaling/ has it."""

from collections.abc import Sequence

from reconciler.model.plan.decision import Decision, Delete, Hold, Label, Taint
from tests.unit.plan.scaling.stage import NOW


def told(decisions: Sequence[Decision]) -> list[str]:
    """mark a100 8-9 at 600: SurplusEmptyNode. Times are in seconds from now; nodes of one line share all of it."""
    lines: dict[str, list[str]] = {}
    for each in decisions:
        verb, end = _verb(each)
        pool, _, number = each.subject.name.rpartition("-")
        if each.subject.kind != "Node":
            pool, number = each.subject.name, ""
        lines.setdefault(f"{verb} {pool} * {end}: {each.reason.code}", []).append(number)
    return [" ".join(line.replace(" *", _ranges(which)).split()).replace(" :", ":") for line, which in lines.items()]


def _verb(decision: Decision) -> tuple[str, str]:
    act, would = decision.act, "would " if decision.would else ""
    match act:
        case Hold(until=until):
            return "hold", f"until {(until - NOW) // 1_000}" if until is not None else ""
        case Taint(value=None, effect=effect):
            return f"{would}keep", effect
        case Taint(value=str(value), effect="PreferNoSchedule"):
            return f"{would}mark", f"at {int(value) - NOW // 1_000}"
        case Taint(value=str(value)):
            return f"{would}harden", f"at {int(value) - NOW // 1_000}"
        case Delete():
            return f"{would}delete", ""
        case Label():
            return f"{would}label", ""
    raise AssertionError(act)


def _ranges(texts: Sequence[str]) -> str:
    """005, 006, 007, 011 -> 5-7,11."""
    found: list[list[int]] = []
    for number in sorted(int(text) for text in texts if text):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    parts = (str(first) if first == last else f"{first}-{last}" for first, last in found)
    return "".join(f" {each}" for each in [",".join(parts)] if each)
