"""A problem in a policy: its position, message, remedy, and the last change of the line."""

from typing import Literal

import msgspec


class PolicyRef(msgspec.Struct, frozen=True, gc=False, order=True):
    """The policy that a problem belongs to."""

    kind: str = ""  # empty: unknown
    name: str = ""


class Problem(msgspec.Struct, frozen=True, gc=False, order=True):
    """Lines and columns count from 1; line 0 means the whole file."""

    file: str
    line: int
    column: int
    code: str
    sentence: str
    remedy: str = ""
    width: int = 1  # width of the underline
    excerpt: str = ""  # the source line
    severity: Literal["error", "warning"] = "error"  # a policy with only warnings is in force
    subject: PolicyRef = PolicyRef()  # for a template: the policy for which the template was rendered
    field: str = ""  # the field that the sentence names, such as spec.minSize
    is_absent: bool = False  # the requested file or object does not exist


# --- Source positions, so that every decision can be traced to a line.


class Origin(msgspec.Struct, frozen=True, gc=False, order=True):
    """Where a value was written; line 0 means the whole file or object."""

    file: str
    line: int
    revision: str = ""

    @property
    def place(self) -> str:
        """file:line, or only the file if there is no line."""
        return f"{self.file}:{self.line}" if self.line > 0 else self.file


# --- The last change of a policy line, from the repository's history.


class LastChange(msgspec.Struct, frozen=True):
    """The commit that last changed a line.

    If the history is cut off, because the clone is shallow, the history is very long or commits cannot be read: the
    oldest commit known to contain the line.
    """

    origin: Origin
    commit: str = ""
    author: str = ""
    date: str = ""  # YYYY-MM-DD, UTC
    subject: str = ""
    unknown_before: str = ""
