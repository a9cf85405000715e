"""The demo: its screen, its acts, and a pool's timeline."""

import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec

from reconciler import __version__, report
from reconciler.cli.files import replace_files
from reconciler.cli.options import wants_color
from reconciler.cli.plan_output import setting_of
from reconciler.controller import ClusterView
from reconciler.controller.demo import (
    RAISED,
    TAINTED,
    DemoRevision,
    LineEdit,
    Witness,
    cluster_before,
    decided,
    later,
    marks_of,
    number_of_steps,
    performed,
    reviewed,
    revision,
    scenario_file,
)
from reconciler.controller.simulation.report_page import page_of
from reconciler.model.instant import Instant, clock, span
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.explain.facts import ExplainedObject
from reconciler.plan.files import dump
from reconciler.plan.scaling.reasons import DeletionNear, EmptyNodeDeleted, SurplusEmptyNode
from reconciler.report.document import ReportDocument, Tone
from reconciler.report.explain.subject import Explained, about, explained_document
from reconciler.report.formats.text import Paint
from reconciler.report.plans.build import describe_decisions, planned_of
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.simulation.simulated import PoolStep, Simulated, TimelineStep
from reconciler.report.wording import columns, counted, dollars, per_mille, percent

# --- The demo's screen; owner of how wide it is, in which colours, and at which pace somebody looks at it.

_NARROWEST, _WIDEST = 60, 120
_BETWEEN_ACTS_SECONDS = 0.7
_UNSEEN = 100  # columns of a table where nobody sees a terminal


class Screen:
    """What is said goes to standard output; nothing moves where that is no terminal."""

    def __init__(self, color: str, *, moves: bool) -> None:
        self.color = wants_color(color)
        self.paint = Paint(self.color)
        self.moves = moves and sys.stdout.isatty()
        columns = shutil.get_terminal_size().columns
        self._width = min(max(columns, _NARROWEST), _WIDEST) if sys.stdout.isatty() else None

    @property
    def columns(self) -> int:
        return self._width or _UNSEEN

    def heading(self, number: int, title: str, command: str) -> None:
        """What comes, and the command that shows it."""
        self.wait(_BETWEEN_ACTS_SECONDS)
        left = f"{number}  {title}"
        gap = " " * max(2, self.columns - len(left) - len(command))
        self.line()
        self.line(f"{self.paint.bold(left)}{gap}{self.paint.dim(command)}")
        self.line()

    def say(self, text: str, tone: Tone = "plain") -> None:
        self.line(self.paint.toned(f"   {text}", tone))

    def show(self, document: ReportDocument) -> None:
        """As the command would print it."""
        for each in report.write(document, "text", color=self.color).splitlines():
            self.line(f"   {each}" if each else "")

    def line(self, text: str = "") -> None:
        for each in folded(text, self._width):
            click.echo(each.rstrip(), color=True)

    def rewrite(self, text: str) -> None:
        """The line that is there already is written anew; only where something moves."""
        click.echo(f"\r{text}\x1b[K", nl=False, color=True)

    def wait(self, seconds: float) -> None:
        """For a person to see it."""
        if self.moves:
            time.sleep(seconds)


# --- The demo, act by act; a Tour is the owner of what one act leaves for the next.

CLUSTER = "demo"
POOL = "a100-training"
_ASKED_BEFORE_MS = 660_000  # how long before a node goes somebody asks about it
_HOURS_A_MONTH = 730


class Tour:
    """Five acts, in their order."""

    def __init__(self, screen: Screen, folder: Path) -> None:
        self._screen = screen
        self._folder = folder
        self._files: dict[str, bytes] = {}
        self._main: DemoRevision
        self._merged: DemoRevision
        self._before: Inputs
        self._simulated: Simulated
        self._witness: Witness
        self._requested = ""

    def welcome(self) -> None:
        screen = self._screen
        screen.line(f"{screen.paint.bold('reconciler')} {__version__}: GPU policies in Git, made so on a cluster")
        screen.line(screen.paint.dim("On an imagined cluster: nothing real is looked at, and nothing is changed."))

    def policies(self) -> None:
        """The fleet as it is."""
        screen = self._screen
        screen.heading(1, "What a platform team commits", "reconciler validate")
        self._main = revision("main")
        kinds = Counter(each.kind for each in self._main.desired.declared)
        files = self._main.texts
        for text in files:
            screen.say(f"{text.path:<34}{_kinds(text.content)}".rstrip())
        screen.line()
        sentence = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
        screen.say(f"✓ no problem in {counted(len(files), 'file')}, in base or prod: {sentence}", "good")
        for notice in self._main.checkup.notices:
            screen.say(f"note: {notice}", "dim")

    def review(self) -> None:
        """A pull request that goes too far."""
        screen = self._screen
        screen.heading(2, "A pull request, as its reviewer sees it", "reconciler plan --base main")
        self._before = cluster_before(self._main)
        proposed = revision("pull-1", RAISED, TAINTED)
        for edit in (TAINTED, RAISED):
            self._edit(edit)
        screen.line()
        head, compared = reviewed(self._before, self._main, proposed)
        cluster_view = ClusterView(self._before.observed, CLUSTER, self._before.now)
        screen.show(plan_document(planned_of(setting_of(cluster_view, head, compared.scene), head, compared)))

    def time_passes(self) -> None:
        """What passes the guard is merged, and the cluster follows."""
        screen = self._screen
        screen.heading(3, "Without the taint it is merged, and the cluster follows", "reconciler run")
        self._merged = revision("pull-2", RAISED)
        passing = Passing(screen, POOL, number_of_steps())
        self._simulated, self._witness = performed(self._merged, passing.look)
        passing.end()
        screen.line()
        for text in self._outcome():
            screen.say(text, "good")

    def _outcome(self) -> tuple[str, ...]:
        sums, steps = self._simulated.sums, self._simulated.steps
        less = steps[0].micro_dollars_per_hour - steps[-1].micro_dollars_per_hour
        harmed = sums.evictions + sums.lost_pods
        waited = "none of them waited" if not sums.gpu_ms_pending else "some waited"
        left = f"✓ {counted(sums.nodes_removed, 'empty node')} left; {harmed or 'no'} pods moved, {waited}"
        return left, f"✓ {dollars(less)} less an hour, {dollars(less * _HOURS_A_MONTH)} a month if the load stays so"

    def why(self) -> None:
        """While it was marked."""
        screen, marked = self._screen, self._witness.marked
        if marked is None:
            return
        marks = marks_of(marked.observed)
        self._requested, at = sorted(marks.items())[len(marks) // 2]
        screen.heading(
            4, f"Why this node? Asked {span(_ASKED_BEFORE_MS // 1_000)} before it went", "reconciler explain"
        )
        inputs = later(marked, Instant(at - _ASKED_BEFORE_MS))
        scene = decided(inputs)
        answer = about(scene, ExplainedObject("node", self._requested))
        setting = setting_of(ClusterView(inputs.observed, CLUSTER, inputs.now), scene)
        decision_texts = describe_decisions(inputs, answer.decisions)
        screen.show(
            explained_document(
                Explained(setting, answer.title, answer.headline, answer.outcome, answer.rows, decision_texts)
            )
        )
        self._files["marked.dump"] = dump.write(inputs)

    def farewell(self, called_as: str) -> None:
        """The files, and what to try with them."""
        screen, folder = self._screen, self._folder
        page = page_of([self._simulated], __version__)
        self._files |= {
            "cluster.dump": dump.write(self._before),
            "scenario.yaml": scenario_file(),
            "report.html": page.html.encode(),
        }
        self._files |= {text.path: text.content for text in self._merged.texts}
        for name in self._files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        replace_files({folder / name: content for name, content in sorted(self._files.items())})
        screen.heading(5, "What to try next", "reconciler --help")
        screen.say(f"cd {folder}")
        if called_as:
            screen.say(f"alias reconciler='{called_as}'")
        for comment, command in self._next():
            screen.line()
            screen.say(f"# {comment}", "dim")
            screen.say(command)
        screen.line()
        screen.say(f"{'The report' if page.note else 'The report, with plots'}: {folder / 'report.html'}")
        if page.note:
            screen.say(f"note: {page.note}", "dim")

    def _next(self) -> Iterator[tuple[str, str]]:
        yield (
            "edit a target or a taint in policies/, and see what that would do",
            ("reconciler plan -e prod --cluster cluster.dump"),
        )
        if self._requested:
            yield (
                "ask about any node, pod, pool or provisioner of that moment",
                (f"reconciler explain node/{self._requested} -e prod --cluster marked.dump"),
            )
        yield "days in seconds: add workloads and faults to scenario.yaml", "reconciler simulate scenario.yaml"
        yield "your own cluster, only looked at: its NodePools as policies", "reconciler import --to fleet"

    def _edit(self, edit: LineEdit) -> None:
        screen = self._screen
        screen.say(f"- {edit.before.strip()}", "bad")
        screen.say(f"+ {edit.after.strip()}", "good")


def _kinds(content: bytes) -> str:
    kinds = [line.split(": ")[1] for line in content.decode().splitlines() if line.startswith("kind: ")]
    return ", ".join(dict.fromkeys(kinds))


# --- A pool as time passes, a line each time that something has happened; owner of the last line, until it is settled.
#
# Where nothing moves, a line is only written once another minute begins, or something is done: what a pool costs
# follows its nodes by some seconds. On a terminal the line is there at once, and written anew until then.

_COLUMNS = ("", "nodes", "busy", "target", "leaving", "in use", "$/h", "")
_WIDTHS = (6, 5, 4, 6, 7, 6, 8)
_GAP = "  "
_MARGIN = "   "
# By the code of a reason.
_DONE = {
    SurplusEmptyNode.__name__: "marked: each leaves in half an hour, unless a pod comes",
    DeletionNear.__name__: "closed to pods, 30 s before their time",
    EmptyNodeDeleted.__name__: "deleted: nothing ran on any, by a last look at each",
}
_SECONDS = 8.0  # that all of it takes, where somebody looks


class Shown(msgspec.Struct, frozen=True):
    """What a line says beside the hour."""

    nodes: int
    busy: int
    target: int | None
    leaving: int
    micro_dollars_per_hour: int


class Passing:
    """Told of each step."""

    def __init__(self, screen: Screen, pool: str, steps: int) -> None:
        self._screen = screen
        self._pool = pool
        self._pause = _SECONDS / max(1, steps)
        self._before: Shown | None = None
        self._last, self._minute = "", ""
        self._is_written = True  # the last line, where nothing moves
        self._each = 0  # nodes that one sign stands for

    def look(self, step: TimelineStep) -> None:
        pool = next((each for each in step.pools if each.pool == self._pool), None)
        if pool is None:
            return
        if self._before is None:
            self._begin(step, pool)
        shown = Shown(pool.nodes, pool.busy_nodes, pool.target, pool.tainted, step.micro_dollars_per_hour)
        text = self._step_text(step, pool)
        has_changed, minute = self._before != shown, clock(step.at, step.at)
        happened = list(_happened(step))
        if happened or (has_changed and minute != self._minute):
            self._settle(has_changed)
        for each in happened:
            self._keep(self._screen.paint.dim(f"{_MARGIN}{each}"))
        if self._screen.moves:
            self._screen.rewrite(text)
            self._screen.wait(self._pause)
        if self._screen.moves or has_changed:
            self._last, self._is_written = text, False
        self._before, self._minute = shown, minute

    def _settle(self, has_changed: bool) -> None:
        """The last line stays as it is. One that moves goes on moving until there is another."""
        if self._last and not self._is_written and (has_changed or not self._screen.moves):
            self._keep(self._last)
            self._is_written = True

    def _keep(self, text: str) -> None:
        """In a line of its own that stays."""
        if self._screen.moves:
            self._screen.rewrite("")
        self._screen.line(text)

    def end(self) -> None:
        self._settle(has_changed=True)

    def _begin(self, step: TimelineStep, pool: PoolStep) -> None:
        paint = self._screen.paint
        taken = len(_MARGIN) + sum(_WIDTHS) + len(_GAP) * len(_WIDTHS)
        self._each = -(-pool.nodes // max(10, self._screen.columns - taken))
        signs = (("█", "busy"), ("░", "empty"), ("▒", "leaving"))
        legend = f"{paint.dim('each sign')} {self._each} {paint.dim('nodes:')} "
        self._screen.line(_MARGIN + legend + "  ".join(f"{sign} {paint.dim(word)}" for sign, word in signs))
        self._screen.line(_MARGIN + paint.dim(_row(_COLUMNS)))
        if pool.tainted:  # the first step is taken when the first cycle is over
            self._screen.line(self._step_text(step, msgspec.structs.replace(pool, tainted=0, target=None)))

    def _step_text(self, step: TimelineStep, pool: PoolStep) -> str:
        cells = (
            clock(step.at, step.at),
            str(pool.nodes),
            str(pool.busy_nodes),
            "-" if pool.target is None else str(pool.target),
            str(pool.tainted),
            percent(per_mille(pool.gpus_used, pool.gpus)),
            dollars(step.micro_dollars_per_hour).removeprefix("$"),
            self._bar(pool),
        )
        return _MARGIN + _row(cells)

    def _bar(self, pool: PoolStep) -> str:
        paint = self._screen.paint
        busy, leaving = (round(each / self._each) for each in (pool.busy_nodes, pool.tainted))
        rest = max(0, round(pool.nodes / self._each) - busy - leaving)
        return paint.toned("█" * busy, "good") + "░" * rest + paint.toned("▒" * leaving, "warn")


def _row(cells: Sequence[str]) -> str:
    return _GAP.join([*map(str.rjust, cells[:-1], _WIDTHS), cells[-1]]).rstrip()


def _happened(step: TimelineStep) -> Iterator[str]:
    """What was done to nodes, alike ones together."""
    counts = Counter(each.reason for each in step.did)
    for code, words in _DONE.items():
        if number := counts.get(code, 0):
            first = next(each for each in step.did if each.reason == code)
            yield f"{clock(first.at, step.at)}  {counted(number, 'node')} {words}"


# --- Lines folded to the width of a terminal, so that what is below what can still be seen; colours take no room.

_PAINT = re.compile(r"\x1b\[[0-9;]*m")
_MARK = re.compile(r"\s*[-+!~✓#] ")
_WORD = re.compile(r"(\s*)(\S+)")


def folded(line: str, width: int | None) -> list[str]:
    """The line, and what hangs below it; a word that is too long by itself stays whole."""
    if width is None or _wide(line) <= width:
        return [line]
    hang = " " * _hang(_PAINT.sub("", line), width)
    lines, current = [], ""
    for space, word in _WORD.findall(line):
        longer = current + space + word
        if current.strip() and _wide(longer) > width:
            lines.append(current)
            current = hang + word
        else:
            current = longer
    return [*lines, current]


def _wide(text: str) -> int:
    return columns(_PAINT.sub("", text))


def _hang(line: str, width: int) -> int:
    """Below the last column where that is not too far to the right, else a little further in than the line."""
    starts = [each.end() for each in re.finditer(r"\S {2,}(?=\S)", line) if each.end() <= width * 3 // 5]
    if starts:
        return starts[-1]
    mark = _MARK.match(line)
    return mark.end() if mark else len(line) - len(line.lstrip()) + 4
