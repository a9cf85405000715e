"""A pool as time passes, a line each time that something has happened; owner of the last line, until it is settled.

Where nothing moves, a line is only written once another minute begins, or something is done: what a pool costs follows
its nodes by some seconds. On a terminal the line is there at once, and written anew until then.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from reconciler.cli.demo.screen import Screen
from reconciler.model.human_time import clock
from reconciler.plan.scaling.reasons import DeletionNear, EmptyNodeDeleted, SurplusEmptyNode
from reconciler.report.simulation.simulated import PoolStep, TimelineStep
from reconciler.report.wording import counted, dollars, per_mille, percent

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
