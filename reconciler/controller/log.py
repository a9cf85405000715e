"""The log of `run`, on standard error; a Log is the owner of what was told last, so that nothing is told twice."""

import sys
import threading
from contextlib import suppress
from typing import Literal, TextIO

from reconciler.controller.cluster import current_instant
from reconciler.model.plan.cycle_result import CycleResult
from reconciler.report.log_lines import Level, LogLine, lines

Format = Literal["text", "json"]


class Log:
    """A Publisher; may be used from several threads."""

    def __init__(self, written: Format = "text", stream: TextIO = sys.stderr) -> None:
        self._format = written
        self._stream = stream
        self._before: CycleResult | None = None
        self._lock = threading.Lock()

    def publish(self, cycled: CycleResult) -> None:
        """What differs from the cycle before."""
        for line in lines(self._before, cycled):
            self.write(line)
        self._before = cycled

    def tell(self, event: str, sentence: str, level: Level = "info") -> None:
        """Something that is no cycle."""
        self.write(LogLine(event, sentence, level=level))

    def write(self, line: LogLine) -> None:
        now = current_instant()
        text = line.as_json(now).decode() if self._format == "json" else line.as_text(now)
        # Nobody may be reading any more, or there is no room: what nobody hears must end no thread.
        with self._lock, suppress(OSError, ValueError):
            self._stream.write(f"{text}\n")
            self._stream.flush()
