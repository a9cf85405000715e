"""The demo, act by act; a Tour is the owner of what one act leaves for the next."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from reconciler import __version__
from reconciler.cli.demo.pool_timeline import Passing
from reconciler.cli.demo.screen import Screen
from reconciler.cli.files.replace import replace_files
from reconciler.cli.report_header import setting_of
from reconciler.controller import ClusterView
from reconciler.controller.demo.recording import Witness, later, marks_of
from reconciler.controller.demo.revisions import RAISED, TAINTED, DemoRevision, LineEdit, revision
from reconciler.controller.demo.story import (
    cluster_before,
    decided,
    number_of_steps,
    performed,
    reviewed,
    scenario_file,
)
from reconciler.controller.simulation.report_page import page_of
from reconciler.model.human_time import span
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.explain.decisions import ExplainedObject
from reconciler.plan.files import dump
from reconciler.report.explain.explained import Explained, explained_document
from reconciler.report.explain.subject import about
from reconciler.report.plans.build import describe_decisions, planned_of
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.simulation.simulated import Simulated
from reconciler.report.wording import counted, dollars

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
