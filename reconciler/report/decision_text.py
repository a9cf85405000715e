"""Texts for decisions: actions, suppressed decisions of pools in Observe mode, edits, and reasons why a saved plan
cannot be applied."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.instant import Instant, format_moment, timestamp
from reconciler.model.plan.decision import Apply, Decision, Delete, Hold, HoldClass, Reason, Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.problem import Origin
from reconciler.plan.files.saved_plan import (
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
from reconciler.plan.guards.observing import Observation
from reconciler.plan.holds.classes import is_held
from reconciler.plan.manifests.compare import compare
from reconciler.plan.manifests.wanted_manifest import wish_of
from reconciler.report.document import Detail, Item, Tone
from reconciler.report.plans.plan_shape import EditTold
from reconciler.report.sentences import sentence
from reconciler.report.wording import grouped

# --- Suppressed decisions, and the conditions under which they would apply, by cause.


def conditions(supposed: Mapping[Observation, int]) -> Iterator[tuple[int, str]]:
    """Number of decisions, and the clause that follows "if"; pools with the same causes are grouped."""
    alike: dict[tuple[bool, bool, bool], Counter[Observation]] = {}
    for each, number in supposed.items():
        alike.setdefault((each.by_mode, each.is_unadopted, bool(each.environment)), Counter())[each] += number
    for causes, group in alike.items():
        only = next(iter(group))
        yield group.total(), only.unless if len(group) == 1 else _of_several(*causes)


def _of_several(by_mode: bool, is_unadopted: bool, is_kept: bool) -> str:
    parts = (
        (by_mode, "their GpuPools were in mode Enforce"),
        (is_unadopted, "their NodePools, created by someone else, were adopted"),
        (is_kept, "their NodePools were not owned by other environments"),
    )
    return " and ".join(words for applies, words in parts if applies)


def marked(heading: str, observation: Observation | None) -> str:
    """A heading of suppressed changes, with the cause."""
    return f"{heading} (suppressed: {observation.causes_text})" if observation is not None else heading


# --- Reasons why a saved plan cannot be applied.

_MOST_NAMED = 5


def difference_words(difference: Difference) -> str:
    """One sentence, without the final full stop."""
    words = _DIFFERENCES[type(difference)](difference)
    if isinstance(difference, OtherCluster | Expired | UnreadNow):
        return words
    return f"{difference.subject.title}: {words}"


_DIFFERENCES: Mapping[type, Callable[[Any], str]] = {
    OtherCluster: lambda it: (
        f"the plan is for cluster {it.saved or 'unknown'}, this cluster is {it.found or 'unknown'}"
    ),
    Expired: lambda it: f"the plan expired at {timestamp(it.at)}",
    UnreadNow: lambda it: f"{it.kind} are unknown: {it.why}",
    NothingToDo: lambda _: "the action is no longer needed",
    OtherObject: lambda _: "the object was replaced by another with the same name",
    HeldNow: lambda it: f"the action is now held: {sentence(it.reason)}",
    OtherAction: lambda it: f"the action has changed: {sentence(it.reason)}",
    OtherFields: lambda it: (
        f"the object now differs in {', '.join(it.now)}; in the plan it differed in {', '.join(it.before)}"
    ),
    TakesMore: lambda it: f"the action would also remove {_listed(it.nodes)}",
    BusierNow: lambda it: f"more GPUs are in use on {_listed(it.nodes)}",
}


def _listed(nodes: tuple[str, ...]) -> str:
    text = ", ".join(nodes[:_MOST_NAMED])
    return text if len(nodes) <= _MOST_NAMED else f"{text} and {len(nodes) - _MOST_NAMED} more"


# --- Edits of an object in the cluster, field by field, in YAML notation.

_WORD = re.compile(r"[A-Za-z0-9_-]+")


def edited(decision: Decision, inputs: Inputs) -> tuple[EditTold, ...]:
    """Edits of an existing object, carried out or held; empty for any other decision."""
    # Only of a whole object: nodes and pods are acted on one by one.
    is_whole = isinstance(decision.act, Apply | Hold) and decision.subject.kind not in {"Node", "Pod"}
    live = _live(decision.subject, inputs.observed) if is_whole else None
    wished = _wished(decision, inputs, live) if live is not None else None
    if live is None or wished is None:
        return ()
    return tuple(
        edit
        for change in compare(live, wished).changes
        for edit in _parts(
            change.path,
            *(None if text is None else msgspec.json.decode(text) for text in (change.before, change.after)),
        )
    )


def _wished(decision: Decision, inputs: Inputs, live: Unstructured) -> dict[str, Any] | None:
    """The manifest that is applied, or would be applied if it were not held."""
    if isinstance(decision.act, Apply):
        applied: dict[str, Any] = msgspec.json.decode(decision.act.manifest)
        return applied
    subject, desired = decision.subject, inputs.desired
    same = (subject.kind, subject.namespace, subject.name)
    manifest = next((each for each in desired.manifests if (each.kind, each.namespace, each.name) == same), None)
    if manifest is None:
        return None
    pool = desired.pool(manifest.pool)
    is_adopted = not live.is_ours and pool is not None and pool.spec.adopt
    return wish_of(manifest, live, desired.environment, adopting=is_adopted).body


def _live(subject: Ref, observed: Observed) -> Unstructured | None:
    same = (subject.kind, subject.namespace, subject.name)
    objects = (*observed.node_pools, *observed.kept)
    return next((each for each in objects if (each.kind, each.metadata.namespace, each.name) == same), None)


def _parts(path: str, was: Any, will: Any) -> Iterator[EditTold]:
    """Of a map each key that differs, of a list each item that is added or removed; None means absent."""
    if isinstance(was, dict) and isinstance(will, dict):
        for key in sorted(was.keys() | will.keys()):
            if was.get(key) != will.get(key):
                yield from _parts(_below(path, key), was.get(key), will.get(key))
        return
    if not isinstance(was, list) and not isinstance(will, list):
        yield EditTold(path, None if was is None else flow(was), None if will is None else flow(will))
        return
    was, will = (each if isinstance(each, list) else [] for each in (was, will))
    goes = [each for each in was if each not in will]
    comes = [each for each in will if each not in was]
    yield from (EditTold(path, flow(each), None) for each in goes)
    yield from (EditTold(path, None, flow(each)) for each in comes)
    if not goes and not comes:
        yield EditTold(path, flow(was), flow(will))


def _below(path: str, key: str) -> str:
    """Such as spec.limits.cpu or spec.limits[nvidia.com/gpu]."""
    return f"{path}.{key}" if _WORD.fullmatch(key) else f"{path}[{key}]"


def flow(value: Any) -> str:
    """The value in YAML flow style, such as {key: dedicated, effect: NoSchedule}."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(each)}" for key, each in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return value if isinstance(value, str) and value else msgspec.json.encode(value).decode()


# Further decisions with the same reason are only counted.
MOST_ALIKE = 5


class DecisionText(msgspec.Struct, frozen=True):
    """A decision, its reason as a sentence, and the remedy, unless the sentence contains it."""

    decision: Decision
    sentence: str
    remedy: str = ""
    edited: tuple[EditTold, ...] = ()  # edits of an existing object
    hold: HoldClass | None = None  # None for an action
    blocks: bool = False  # a blocked hold that counts for this change: the command ends with exit code 4
    observation: Observation | None = None  # why the decision is suppressed; None if it is not

    @property
    def held(self) -> bool:
        return isinstance(self.decision.act, Hold)

    @property
    def held_by_someone(self) -> bool:
        """Whether a person or a guard holds the decision."""
        return is_held(self.decision)

    @property
    def waits(self) -> bool:
        """Whether this is a hold that ends by itself."""
        return self.held and not self.held_by_someone

    @property
    def is_supposed(self) -> bool:
        """Whether the decision is suppressed."""
        return self.decision.would or self.observation is not None

    @property
    def until(self) -> Instant | None:
        """When the hold is re-evaluated."""
        return self.decision.act.until if isinstance(self.decision.act, Hold) else None

    @property
    def place(self) -> str:
        """The policy line that causes the decision."""
        return place_of(self.decision.reason.origin)


def note_of(reason: Reason) -> str:
    """Message of a Kubernetes Event about the reason."""
    try:
        return sentence(reason)
    except KeyError:  # a reason without a sentence is a bug, but must not hide the action
        return reason.code


def place_of(origin: Origin | None) -> str:
    """File and line; empty without an origin."""
    if origin is None or not origin.file:
        return ""
    return origin.place


def decision_items(decision_texts: Sequence[DecisionText], now: Instant) -> Iterator[Item]:
    """The first few decisions per reason, and the number of further ones."""
    alike = grouped(decision_texts, lambda each: (each.decision.reason.code, each.is_supposed))
    for (code, _), group in alike.items():
        yield from (_item(each, now) for each in group[:MOST_ALIKE])
        if len(group) > MOST_ALIKE:
            yield Item("", f"and {len(group) - MOST_ALIKE} more: {code}")


def _item(decision_text: DecisionText, now: Instant) -> Item:
    decision = decision_text.decision
    mark, tone = mark_of(decision_text)
    details = [Detail(decision_text.sentence)]
    details += [Detail(each.words) for each in decision_text.edited]
    if decision_text.remedy:
        details.append(Detail(f"remedy: {decision_text.remedy}"))
    if decision_text.until is not None:
        details.append(Detail(f"re-evaluated {format_moment(decision_text.until, now)}"))
    title = would(decision.subject.title, decision_text.is_supposed)
    return Item(mark, title, decision_text.place, tuple(details), tone)


def mark_of(decision_text: DecisionText) -> tuple[str, Tone]:
    """The mark before the title, and its tone."""
    match decision_text.decision.act:
        case Hold():
            return ("!", "warn") if decision_text.held_by_someone else (".", "dim")
        case Delete():
            return "-", "bad"
        case Apply(presumes=presumes) if presumes.absent:
            return "+", "good"
        case _:
            return "~", "warn"


def would(title: str, marked: bool) -> str:
    """Appends "(suppressed)" to the title of a suppressed decision."""
    return f"{title} (suppressed)" if marked else title
