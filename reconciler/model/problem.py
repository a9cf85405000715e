"""A fault in a policy: its origin, what is wrong, what to do, and who last changed the line."""

from typing import Literal

import msgspec


class PolicyRef(msgspec.Struct, frozen=True, gc=False, order=True):
    """The policy that a problem is of."""

    kind: str = ""  # nothing: none that is known
    name: str = ""


class Problem(msgspec.Struct, frozen=True, gc=False, order=True):
    """Lines and columns count from 1; a line of 0 means the file as a whole."""

    file: str
    line: int
    column: int
    code: str
    sentence: str
    remedy: str = ""
    width: int = 1  # of what the caret underlines
    excerpt: str = ""  # the source line
    severity: Literal["error", "warning"] = "error"  # a policy with warnings alone is in force
    subject: PolicyRef = PolicyRef()  # of a template: the policy for which the problem showed
    field: str = ""  # that the sentence names, such as spec.minSize
    is_absent: bool = False  # what was asked for is not there


# --- Where a value was written, so that every decision can be led back to a line.


class Origin(msgspec.Struct, frozen=True, gc=False, order=True):
    """Where a value was written; a line of 0 means the file, or the object, as a whole."""

    file: str
    line: int
    revision: str = ""

    @property
    def place(self) -> str:
        """file:line, or the file where lines say nothing."""
        return f"{self.file}:{self.line}" if self.line > 0 else self.file


# --- Who last changed a line of a policy, as the repository tells.


class LastChange(msgspec.Struct, frozen=True):
    """The commit that gave a line its content; or the oldest commit that is known to have the line, where it was looked
    for no further: the clone is shallow, the history is very long, or the commits cannot be read."""

    origin: Origin
    commit: str = ""
    author: str = ""
    date: str = ""  # YYYY-MM-DD, UTC
    subject: str = ""
    unknown_before: str = ""
