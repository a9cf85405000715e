"""Report of a release: objects and marks of reconciler that are removed, and those that stay."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Hold, Outcome
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.release import why_unsure
from reconciler.report.applied import outcome_words
from reconciler.report.decision_text import DecisionText, decision_items
from reconciler.report.document import (
    Blank,
    Block,
    CheckedCount,
    Detail,
    Item,
    ItemList,
    ReportDocument,
    ReportNote,
    ReportNotes,
    Section,
    line,
)
from reconciler.report.plans.build import describe_decisions
from reconciler.report.plans.plan_json import decision_json
from reconciler.report.wording import counted

FORMAT_VERSION = 2
_ADD_YES = "add --yes to release them."
NOTHING = "Nothing of reconciler is left to release."


class ReleaseHeader(msgspec.Struct, frozen=True):
    cluster: str
    observed: Observed
    now: Instant
    tool_version: str
    pool: str = ""  # empty: everything
    is_file: bool = False  # the cluster was read from a file


class Released(msgspec.Struct, frozen=True):
    """Result of a release. `left` is what remains to be released; without confirmation nothing is carried out."""

    about: ReleaseHeader
    carried_out: tuple[tuple[Decision, Outcome], ...] = ()
    left: tuple[Decision, ...] = ()
    is_asked: bool = True

    @property
    def why_unsure(self) -> str:
        """Why objects of ours may exist that could not be read."""
        return why_unsure(self.about.observed)

    @property
    def failed(self) -> tuple[tuple[Decision, Outcome], ...]:
        """Releases that failed, and did not succeed in a later try."""
        still = {each.subject for each in self.left if not isinstance(each.act, Hold)}
        last = {decision.subject: (decision, outcome) for decision, outcome in self.carried_out}
        return tuple(each for subject, each in sorted(last.items()) if subject in still and each[1].result != "done")

    @property
    def done(self) -> int:
        return len({decision.subject for decision, outcome in self.carried_out if outcome.result == "done"})


def released_document(released: Released) -> ReportDocument:
    """The document: releases done or planned; then what stays."""
    return ReportDocument(
        command="release",
        title=f"Release of {released.about.pool or 'everything'} in {released.about.cluster}",
        tool_version=released.about.tool_version,
        blocks=tuple(_blocks(released)),
        payload=_payload(released),
        otherwise=NOTHING,
        judged=CheckedCount(len(released.carried_out) + len(released.left), "object", "object that stays"),
    )


def _blocks(released: Released) -> Iterator[Block]:
    if released.why_unsure:
        text = (
            f"some objects could not be read, so objects of reconciler may stay in the cluster: {released.why_unsure}"
        )
        yield ReportNotes((ReportNote("warning", text),))
    done = [decision for decision, outcome in released.carried_out if outcome.result == "done"]
    if done:
        yield Section("Released", (ItemList(tuple(_items(released, done))),))
    if released.failed:
        yield Section("Not released", (ItemList(tuple(_failed(released))),))
    held = [each for each in released.left if isinstance(each.act, Hold)]
    due = [each for each in released.left if not isinstance(each.act, Hold)]
    if due and not released.is_asked:
        yield Section("To be released", (ItemList(tuple(_items(released, due))),))
    stays = tuple(_stays(released.about.observed))
    if held or stays:
        items = tuple(decision_items(_decision_texts(released, held), released.about.now))
        blocks: list[Block] = [ItemList(items)] if items else []
        yield Section("Stays", (*blocks, *(line(each) for each in stays)))
    yield Blank()
    yield line(_total(released, len(due)))


def _total(released: Released, due: int) -> str:
    if not released.is_asked:
        how = "to release them, run release --yes without --cluster." if released.about.is_file else _ADD_YES
        return f"{counted(due, 'object')} to release: {how}" if due else NOTHING
    text = f"{counted(released.done, 'object')} released" if released.done else ""
    if released.failed:
        return f"{text or 'nothing released'}, {len(released.failed)} not: run the command again to finish"
    return f"{text}; nothing of reconciler is left to release." if text else NOTHING


def _stays(observed: Observed) -> Iterator[str]:
    node_pools = sorted(each.name for each in observed.node_pools if each.is_ours)
    if node_pools:
        yield (
            f"{counted(len(node_pools), 'NodePool')} with their nodes, labels and budgets, unchanged: "
            f"{', '.join(node_pools)}; Karpenter continues to manage them"
        )
    if observed.policies:
        text = counted(len(observed.policies), "custom resource")
        yield f"{text} of reconciler: delete them with the tool that applied them; their NodePools stay"
    namespaces = f"{observed.own_namespace}, {names.SMART_PODS_NAMESPACE} and {names.LEASES_NAMESPACE}"
    yield f"the namespaces {namespaces}, roles, admission policies and definitions: uninstall them"


def _items(released: Released, decisions: list[Decision]) -> Iterator[Item]:
    for decision_text in _decision_texts(released, decisions):
        yield Item("-", decision_text.decision.subject.title, "", (Detail(decision_text.sentence),), "warn")


def _failed(released: Released) -> Iterator[Item]:
    for decision, outcome in released.failed:
        (decision_text,) = _decision_texts(released, [decision])
        details = Detail(decision_text.sentence), Detail(outcome_words(outcome), tone="bad")
        yield Item("!", decision.subject.title, "", details, "bad")


def _decision_texts(released: Released, decisions: Sequence[Decision]) -> tuple[DecisionText, ...]:
    about = released.about
    return describe_decisions(Inputs(Desired("", ""), about.observed, about.now), decisions)


def _payload(released: Released) -> dict[str, Any]:
    decision_texts = _decision_texts(released, released.left)
    return {
        "format_version": FORMAT_VERSION,
        "pool": released.about.pool,
        "is_asked": released.is_asked,
        "why_unsure": released.why_unsure,
        "outcomes": [msgspec.to_builtins(outcome) for _, outcome in released.carried_out],
        "decisions": [msgspec.to_builtins(decision_json(each)) for each in decision_texts],
    }
