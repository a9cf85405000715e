"""The reference of the kinds has every field, and its links lead somewhere."""

import re

import pytest

from reconciler.policy.rules.kinds import KINDS
from reconciler.policy.shape import Kind
from reconciler.schema.reference import reference_page

PAGE = reference_page(KINDS)
LINES = PAGE.splitlines()


def section(title: str) -> list[str]:
    start = LINES.index(f"## {title}")
    return LINES[start : next((n for n in range(start + 1, len(LINES)) if LINES[n].startswith("## ")), None)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_has_its_sentence_names_fields_and_rules(kind: Kind) -> None:
    said = "\n".join(section(kind.name))
    assert kind.shape.sentence in said
    assert f"`kubectl get {kind.plural}`, or `{kind.short}`" in said
    for field in kind.shape.fields:
        assert f"| `{field.name}` | " in said
        assert field.sentence in said
    for rule in kind.rules:
        assert f"- {rule.code}: " in said
        assert rule.remedy in said


ROWS = """\
| `minSize` | an integer from 0 to 100000 (nodes) | required | Minimum number of nodes. |
| `cleanupInterval` | a duration such as 90s, 30m or 1h30m | `30s` | \
Time between cleanups of finished and orphaned smart pods. |
| `poolNames` | a list of 1 to 1000 items: the name of a [GpuPool](#gpupool), or `*` | required | \
Names of the pools; "*" for all. |
| `capacityTypes` | a list of 1 to 3 items: reserved, on-demand or spot | `[on-demand]` | \
Allowed capacity types. Smart pods try them in order; otherwise Karpenter prefers reserved, then spot. |
| `taints` | a list of at most 50 items: [a map](#gpupool-taints); unique by `key` and `effect` | empty | \
Taints of the nodes. |
| `perHour` | [a map](#changeguard-perhour) |  | Limits of one hour. |
"""


@pytest.mark.parametrize("row", ROWS.splitlines())
def test_a_field_is_said_in_words(row: str) -> None:
    assert row in LINES


def test_objects_within_objects_have_their_own_tables() -> None:
    start = LINES.index('<a id="gpupool-disruption-budgets"></a>')
    assert LINES[start + 2 : start + 5] == [
        "### GpuPool `disruption.budgets[]`",
        "",
        "How many nodes Karpenter may disrupt at once.",
    ]


def test_every_link_leads_to_an_anchor_that_is_there_once() -> None:
    titles = [line.removeprefix("## ").lower() for line in LINES if line.startswith("## ")]
    anchors = [*titles, *re.findall(r'<a id="([^"]+)">', PAGE)]
    assert len(set(anchors)) == len(anchors)
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= set(anchors)


def test_no_cell_breaks_its_table() -> None:
    """A bar in a cell, from a pattern or a sentence, would begin another one."""
    widths = {len(re.split(r"(?<!\\)\|", line)) for line in LINES if line.startswith("|")}
    assert widths == {6}


def test_what_agents_report_and_what_every_status_has_is_there() -> None:
    assert "### GpuNodeStatus `status.devices[]`" in LINES
    assert "### Status `conditions[]`" in LINES
