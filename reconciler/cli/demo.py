"""The demo: screen, acts, and timeline of a pool."""

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
from reconciler.controller.cluster import ClusterView
from reconciler.controller.demo import (
    CLAIMS_FILE,
    RAISED,
    TAINTED,
    DemoRevision,
    Witness,
    claims_file,
    claims_played,
    cluster_before,
    later,
    marks_of,
    number_of_steps,
    performed,
    reviewed,
    revision,
    scenario_file,
)
from reconciler.controller.simulation.report_page import page_of
from reconciler.loop.cycle import decide
from reconciler.model.instant import Instant, clock, span
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.files import dump
from reconciler.plan.scaling.reasons import DeletionNear, EmptyNodeDeleted, SurplusEmptyNode
from reconciler.report.document import ReportDocument, Tone
from reconciler.report.explain.about import ExplainedObject
from reconciler.report.explain.subject import Explained, about, explained_document
from reconciler.report.formats.text import Paint
from reconciler.report.plans.build import describe_decisions, planned_of
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.simulation.simulated import PoolStep, Simulated, TimelineStep
from reconciler.report.wording import columns, counted, dollars, per_mille, percent

# --- Screen of the demo. Owns the width, the colours and the pace.

_NARROWEST, _WIDEST = 60, 120
_BETWEEN_ACTS_SECONDS = 0.7
_UNSEEN = 100  # columns of a table without a terminal


class Screen:
    """Writes to standard output; without a terminal nothing is animated."""

    def __init__(self, color: str, *, moves: bool) -> None:
        self.color = wants_color(color)
        self.paint = Paint(self.color)
        self.moves = moves and sys.stdout.isatty()
        width = min(max(shutil.get_terminal_size().columns, _NARROWEST), _WIDEST)
        self._width = width if sys.stdout.isatty() else None
        self.columns = self._width or _UNSEEN

    def heading(self, number: int, title: str, command: str) -> None:
        self.wait(_BETWEEN_ACTS_SECONDS)
        left = f"{number}  {title}"
        gap = " " * max(2, self.columns - len(left) - len(command))
        self.line()
        self.line(f"{self.paint.bold(left)}{gap}{self.paint.dim(command)}")
        self.line()

    def say(self, text: str, tone: Tone = "plain") -> None:
        self.line(self.paint.toned(f"   {text}", tone))

    def show(self, document: ReportDocument) -> None:
        """Prints the document as the command would."""
        for each in report.write(document, "text", color=self.color).splitlines():
            self.line(f"   {each}" if each else "")

    def line(self, text: str = "") -> None:
        for each in folded(text, self._width):
            click.echo(each.rstrip(), color=True)

    def rewrite(self, text: str) -> None:
        """Rewrites the current line; only if animated."""
        click.echo(f"\r{text}\x1b[K", nl=False, color=True)

    def wait(self, seconds: float) -> None:
        """Pauses, so that a person can read along."""
        if self.moves:
            time.sleep(seconds)


# --- Acts of the demo. A Tour holds the state that one act leaves for the next.

CLUSTER = "demo"
POOL = "a100-training"
_ASKED_BEFORE_MS = 660_000  # how long before a node's deletion `explain` is called
_HOURS_A_MONTH = 730


class Tour:
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
        screen.line(f"{screen.paint.bold('reconciler')} {__version__}: GPU policies in Git, applied to a cluster")
        screen.line(screen.paint.dim("This demo uses a simulated cluster. No real cluster is read or changed."))

    def policies(self) -> None:
        """The fleet before the change."""
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
        """A pull request with too large an effect."""
        screen = self._screen
        screen.heading(2, "A pull request, as a reviewer sees it", "reconciler plan --base main")
        self._before = cluster_before(self._main)
        proposed = revision("pull-1", RAISED, TAINTED)
        for edit in (TAINTED, RAISED):
            screen.say(f"- {edit.before.strip()}", "bad")
            screen.say(f"+ {edit.after.strip()}", "good")
        screen.line()
        head, compared = reviewed(self._before, self._main, proposed)
        cluster_view = ClusterView(self._before.observed, CLUSTER, self._before.now)
        screen.show(plan_document(planned_of(setting_of(cluster_view, head, compared.scene), head, compared)))

    def time_passes(self) -> None:
        """The part that passes the guard is merged, and the cluster follows."""
        screen = self._screen
        screen.heading(3, "The change is merged without the taint, and the cluster follows", "reconciler run")
        self._merged = revision("pull-2", RAISED)
        passing = Passing(screen, POOL, number_of_steps())
        self._simulated, self._witness = performed(self._merged, passing.look)
        passing.settle(has_changed=True)
        screen.line()
        for text in self._outcome():
            screen.say(text, "good")

    def _outcome(self) -> tuple[str, ...]:
        sums, steps = self._simulated.sums, self._simulated.steps
        less = steps[0].micro_dollars_per_hour - steps[-1].micro_dollars_per_hour
        harmed = sums.evictions + sums.lost_pods
        waited = "no pod waited" if not sums.gpu_ms_pending else "some pods waited"
        left = f"✓ {counted(sums.nodes_removed, 'empty node')} deleted; {harmed or 'no'} pods moved, {waited}"
        return left, f"✓ {dollars(less)} less per hour, {dollars(less * _HOURS_A_MONTH)} per month at this load"

    def why(self) -> None:
        """Explains the node while it was marked."""
        screen, marked = self._screen, self._witness.marked
        if marked is None:
            return
        marks = marks_of(marked.observed)
        self._requested, at = sorted(marks.items())[len(marks) // 2]
        screen.heading(
            4, f"Why this node? Asked {span(_ASKED_BEFORE_MS // 1_000)} before its deletion", "reconciler explain"
        )
        inputs = later(marked, Instant(at - _ASKED_BEFORE_MS))
        self._explain(inputs, ExplainedObject("node", self._requested))
        self._files["marked.dump"] = dump.write(inputs)

    def claims(self) -> None:
        """Pods with a GpuClaim: their GPUs, and why one of them waits."""
        screen = self._screen
        inputs, pods = claims_played()
        screen.heading(5, "Pods with a GpuClaim, on a node with two islands of four GPUs", "reconciler explain")
        for each in pods:
            got = f"GPUs {','.join(each.gpus)}   {', '.join(each.leases)}" if each.gpus else "waits"
            screen.say(f"{each.name:<12}claim {each.claim:<7}{each.requests:<28}{got}")
        screen.line()
        waiting = [each for each in pods if not each.gpus]
        for each in waiting[:1]:
            self._explain(inputs, ExplainedObject("pod", each.name, each.namespace))
        self._files["claims.dump"] = dump.write(inputs)

    def _explain(self, inputs: Inputs, subject: ExplainedObject) -> None:
        scene = decide(inputs)
        answer = about(scene, subject)
        setting = setting_of(ClusterView(inputs.observed, CLUSTER, inputs.now), scene)
        decision_texts = describe_decisions(inputs, answer.decisions)
        explained = Explained(setting, answer.title, answer.headline, answer.outcome, answer.rows, decision_texts)
        self._screen.show(explained_document(explained))

    def farewell(self, called_as: str) -> None:
        """Prints the files, and commands to try with them."""
        screen, folder = self._screen, self._folder
        page = page_of([self._simulated], __version__)
        self._files |= {
            "cluster.dump": dump.write(self._before),
            "scenario.yaml": scenario_file(),
            CLAIMS_FILE: claims_file(),
            "report.html": page.html.encode(),
        }
        self._files |= {text.path: text.content for text in self._merged.texts}
        for name in self._files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        replace_files({folder / name: content for name, content in sorted(self._files.items())})
        screen.heading(6, "What to try next", "reconciler --help")
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
        command = "reconciler plan -e prod --cluster cluster.dump"
        yield "edit a target or a taint in policies/, and see the effect", command
        if self._requested:
            command = f"reconciler explain node/{self._requested} -e prod --cluster marked.dump"
            yield "explain any node, pod, pool or provisioner at that moment", command
        yield "simulate days in seconds: add workloads and faults to scenario.yaml", "reconciler simulate scenario.yaml"
        yield "read your own cluster, and write its NodePools as policies", "reconciler import --to fleet"


def _kinds(content: bytes) -> str:
    kinds = [line.split(": ")[1] for line in content.decode().splitlines() if line.startswith("kind: ")]
    return ", ".join(dict.fromkeys(kinds))


# --- Timeline of a pool, with a line for each event. Owns the last line until it is final.
#
# Without a terminal, a line is printed once another minute begins or an action is done, because the cost of a pool
# follows its nodes by some seconds. On a terminal the line is printed at once and rewritten until then.

_COLUMNS = ("", "nodes", "busy", "target", "leaving", "in use", "$/h", "")
_WIDTHS = (6, 5, 4, 6, 7, 6, 8)
_GAP = "  "
_MARGIN = "   "
# Keyed by reason code.
_DONE = {
    SurplusEmptyNode.__name__: "marked: deleted in half an hour, unless a pod arrives",
    DeletionNear.__name__: "tainted NoSchedule, 30 s before deletion",
    EmptyNodeDeleted.__name__: "deleted: a last check found no pods on them",
}
_SECONDS = 8.0  # duration of the whole timeline on a terminal


class Passing:
    def __init__(self, screen: Screen, pool: str, steps: int) -> None:
        self._screen = screen
        self._pool = pool
        self._pause = _SECONDS / max(1, steps)
        self._before: tuple[int | None, ...] = ()  # content of the line before, beside the time
        self._last, self._minute = "", ""
        self._is_written = True  # the last line, without a terminal
        self._each = 0  # nodes per sign

    def look(self, step: TimelineStep) -> None:
        pool = next((each for each in step.pools if each.pool == self._pool), None)
        if pool is None:
            return
        if not self._before:
            self._begin(step, pool)
        shown = pool.nodes, pool.busy_nodes, pool.target, pool.tainted, step.micro_dollars_per_hour
        text = self._step_text(step, pool)
        has_changed, minute = self._before != shown, clock(step.at, step.at)
        happened = list(_happened(step))
        if happened or (has_changed and minute != self._minute):
            self.settle(has_changed)
        for each in happened:
            self._keep(self._screen.paint.dim(f"{_MARGIN}{each}"))
        if self._screen.moves:
            self._screen.rewrite(text)
            self._screen.wait(self._pause)
        if self._screen.moves or has_changed:
            self._last, self._is_written = text, False
        self._before, self._minute = shown, minute

    def settle(self, has_changed: bool) -> None:
        """Makes the last line final. An animated line stays animated until the next one."""
        if self._last and not self._is_written and (has_changed or not self._screen.moves):
            self._keep(self._last)
            self._is_written = True

    def _keep(self, text: str) -> None:
        """Prints a permanent line of its own."""
        if self._screen.moves:
            self._screen.rewrite("")
        self._screen.line(text)

    def _begin(self, step: TimelineStep, pool: PoolStep) -> None:
        paint = self._screen.paint
        taken = len(_MARGIN) + sum(_WIDTHS) + len(_GAP) * len(_WIDTHS)
        self._each = -(-pool.nodes // max(10, self._screen.columns - taken))
        signs = (("█", "busy"), ("░", "empty"), ("▒", "leaving"))
        legend = f"{paint.dim('each character:')} {self._each} {paint.dim('nodes;')} "
        self._screen.line(_MARGIN + legend + "  ".join(f"{sign} {paint.dim(word)}" for sign, word in signs))
        self._screen.line(_MARGIN + paint.dim(_row(_COLUMNS)))
        if pool.tainted:  # the first step comes after the first cycle
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
    """Actions on nodes, equal ones grouped."""
    counts = Counter(each.reason for each in step.did)
    for code, words in _DONE.items():
        if number := counts.get(code, 0):
            first = next(each for each in step.did if each.reason == code)
            yield f"{clock(first.at, step.at)}  {counted(number, 'node')} {words}"


# --- Lines folded to the width of a terminal, aligned with their columns; colours take no width.

_PAINT = re.compile(r"\x1b\[[0-9;]*m")
_MARK = re.compile(r"\s*[-+!~✓#] ")
_WORD = re.compile(r"(\s*)(\S+)")


def folded(line: str, width: int | None) -> list[str]:
    """The line and its continuation lines; a word that is longer than the width stays whole."""
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
    """Indent of continuation lines: below the last column if that is left enough, otherwise a little more than the
    line."""
    starts = [each.end() for each in re.finditer(r"\S {2,}(?=\S)", line) if each.end() <= width * 3 // 5]
    if starts:
        return starts[-1]
    mark = _MARK.match(line)
    return mark.end() if mark else len(line) - len(line.lstrip()) + 4
