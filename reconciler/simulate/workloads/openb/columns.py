"""The columns of the openb lists, in their order, and what holds the rows of a list with all that is wrong in them."""

import csv
from collections.abc import Iterator

from reconciler.model.bundle import Text
from reconciler.model.problem import Problem

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
WHOLE_GPU_MILLI = 1_000
MOST_PROBLEMS = 20  # of one file: whoever gave another file by mistake need not read of each of its lines

_MOST = 10**12  # of any number: more is no number of these


class Cells:
    """One row; owner of whether anything was wrong with it."""

    def __init__(self, rows: "TraceRows", line: int, cells: dict[str, str]) -> None:
        self.line = line
        self.is_sound = True
        self._rows = rows
        self._cells = cells

    def text(self, name: str) -> str:
        return self._cells[name].strip()

    def number(self, name: str) -> int:
        """What is empty is 0."""
        written = self.text(name)
        try:
            result = int(float(written or 0))
        except (ValueError, OverflowError):
            self.refuse(f'{name}: expected a number, got "{written}"', "write a whole number")
            return 0
        if not 0 <= result <= _MOST:
            self.refuse(f"{name}: {written} is out of range", f"write a number from 0 to {_MOST}")
            return 0
        return result

    def refuse(self, text: str, remedy: str) -> None:
        """The row is of no use."""
        self.is_sound = False
        self._rows.refuse(self.line, "RC103", text, remedy)


class TraceRows:
    """Owner of the problems of one list."""

    def __init__(self, text: Text, columns: tuple[str, ...]) -> None:
        self.problems: list[Problem] = []
        self._text = text
        self._columns = columns
        self._left_out = 0

    def __iter__(self) -> Iterator[Cells]:
        """In their order; those that have not a value for each column are told and left out."""
        reader = csv.reader(self._text.content.decode(errors="replace").splitlines())
        heading = [each.strip() for each in next(reader, [])]
        if missing := [name for name in self._columns if name not in heading]:
            text = f"the column {missing[0]} is missing"
            self.refuse(1, "RC104", text, f"the first line must name {', '.join(self._columns)}")
            return
        for cells in reader:
            if len(cells) == len(heading):
                yield Cells(self, reader.line_num, dict(zip(heading, cells, strict=True)))
            elif cells:
                text = f"expected {len(heading)} values, got {len(cells)}"
                self.refuse(reader.line_num, "RC105", text, "write one value a column")
        if self._left_out:
            text = f"{self._left_out} more such problems in this file"
            self.problems.append(Problem(self._text.path, 0, 0, "RC103", text, "correct the first ones, and try again"))

    def refuse(self, line: int, code: str, text: str, remedy: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(self._text.path, line, 1, code, text, remedy))
        else:
            self._left_out += 1
