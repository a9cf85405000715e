"""What a plan decides about drains, a line each, as tests/cases/drain/ has it."""

from reconciler.model import names
from reconciler.model.instant import Instant, instant
from reconciler.model.plan.decision import Annotate, Decision, Delete, Evict, Hold, Taint
from tests.unit.plan.scaling.stage import NOW


def told(decisions: tuple[Decision, ...]) -> list[str]:
    """A line each: candidate a: DrainCandidate; times are in seconds from now."""
    return [f"{_verb(each)}: {each.reason.code}" for each in decisions]


def _verb(decision: Decision) -> str:
    name, would = decision.subject.name, "would " if decision.would else ""
    match decision.act:
        case Hold(until=until):
            return f"hold {name}" + (f" until {_seconds(until)}" if until is not None else "")
        case Taint(key=key, value=None):
            return f"{would}{_WORDS[key]} off {name}"
        case Taint(key=key, value=str(value)):
            ago = NOW // 1_000 - int(value)
            return f"{would}{_WORDS[key]} {name}" + (f" since {ago}" if ago else "")
        case Evict(grace_seconds=grace):
            others = "".join(f", {each.ref.name} {each.grace_seconds}s" for each in decision.act.others)
            return f"{would}evict {name} {grace}s{others}"
        case Annotate(annotations=((names.EVICT_AT, None),)):
            return f"{would}call off {name}"
        case Annotate(annotations=((names.EVICT_AT, str(at)),)):
            return f"{would}tell {name} {_seconds(instant(at))}"
        case Delete(presumes=presumes):
            assert presumes.empty
            return f"{would}delete {name}"
    raise AssertionError(decision.act)


_WORDS = {names.DRAIN_CANDIDATE: "candidate", names.DRAINING: "drain", names.DELETION_TIME: "mark"}


def _seconds(moment: Instant) -> int:
    return (moment - NOW) // 1_000
