"""Text made fit for Markdown as GitHub and GitLab read it: it says what it says, and marks, links and calls nothing."""

import re
from html import escape

from reconciler.report.visible import visible

_MARKS = re.compile(r"[\\`*_{}\[\]|~]")
# At the start of a line these would begin a heading, a list, a quote or a rule.
_STARTS = re.compile(r"^([-+#=]|[0-9]+(?=[.)]))")
# These call people and teams, and link issues and addresses: a comment in between, which nobody sees, parts them.
_CALLS = re.compile(
    r"(?<=@)(?=\w)|(?<=#)(?=\d)|(?<=GH-)(?=\d)|(?<=:)(?=//)|(?<=www)(?=\.)|(?<=mailto:)|(?<=xmpp:)", re.IGNORECASE
)
_PARTED = "<!-- -->"
# Two in a line would be a formula.
_DOLLAR = "<span>$</span>"


def inline(text: str) -> str:
    """For a paragraph, a list or a cell of a table."""
    written = _MARKS.sub(r"\\\g<0>", escape(visible(text).strip(), quote=False))
    return _apart(_STARTS.sub(_escaped_start, written))


def within_html(text: str) -> str:
    """Between tags of HTML, where marks mean nothing."""
    return _apart(escape(visible(text).strip(), quote=False))


def code(text: str) -> str:
    """As code, in a paragraph, a list or a cell."""
    written = inline(text)
    return f"<code>{written}</code>" if written else ""


def fenced(lines: list[str]) -> list[str]:
    """A block of code, within a fence longer than any in it."""
    shown = [visible(line) for line in lines]
    longest = max((len(run) for line in shown for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *shown, fence]


def _escaped_start(start: re.Match[str]) -> str:
    return f"{start[0]}\\" if start[0].isdigit() else f"\\{start[0]}"


def _apart(text: str) -> str:
    return _CALLS.sub(_PARTED, text).replace("$", _DOLLAR)
