"""What is reported: the documents that every format can write."""

import msgspec

from reconciler.model.problem import Problem


class Checked(msgspec.Struct, frozen=True):
    """The problems in the policies that were looked at."""

    problems: tuple[Problem, ...]
    files: int  # how many were looked at, those without a problem too
    tool_version: str
    titles: tuple[tuple[str, str], ...] = ()  # of a problem's code, in one line

    @property
    def in_order(self) -> tuple[Problem, ...]:
        """The problems by file, line and column."""
        return tuple(sorted(self.problems))

    @property
    def summary(self) -> str:
        return f"{counted(len(self.problems), 'error')} in {counted(self.files, 'file')}"


def counted(number: int, noun: str) -> str:
    """A number and what it counts: 1 error, 2 errors."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
