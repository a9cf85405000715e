"""Why a saved plan may not be applied, in words."""

from reconciler.model.instant import timestamp
from reconciler.plan.files.differences import (
    BusierNow,
    Difference,
    Expired,
    HeldNow,
    NothingToDo,
    OtherAction,
    OtherCluster,
    OtherFields,
    OtherObject,
    TakesMore,
    UnreadNow,
)
from reconciler.report.sentences import sentence

_MOST_NAMED = 5


def difference_words(difference: Difference) -> str:
    """One sentence, without the final full stop."""
    match difference:
        case OtherCluster(saved=saved, found=found):
            return f"it is for cluster {saved or 'unknown'}, and this is {found or 'unknown'}"
        case Expired(at=at):
            return f"it expired at {timestamp(at)}"
        case UnreadNow(kind=kind, why=why):
            return f"{kind} could not be read: {why}"
        case _:
            return f"{difference.subject.title}: {_about_subject(difference)}"


def _about_subject(
    difference: NothingToDo | OtherObject | HeldNow | OtherAction | OtherFields | TakesMore | BusierNow,
) -> str:
    match difference:
        case NothingToDo():
            return "nothing is to be done about it any more"
        case OtherObject():
            return "it is another object of that name"
        case HeldNow(reason=reason):
            return f"it is held now: {sentence(reason)}"
        case OtherAction(reason=reason):
            return f"something else would be done about it now: {sentence(reason)}"
        case OtherFields(before=before, now=now):
            return f"it differs in {', '.join(now)} now, and then in {', '.join(before)}"
        case TakesMore(nodes=nodes):
            return f"it would take {_listed(nodes)} too"
        case BusierNow(nodes=nodes):
            return f"more is in use on {_listed(nodes)}"


def _listed(nodes: tuple[str, ...]) -> str:
    text = ", ".join(nodes[:_MOST_NAMED])
    return text if len(nodes) <= _MOST_NAMED else f"{text} and {len(nodes) - _MOST_NAMED} more"
