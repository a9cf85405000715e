"""A fault in a policy: where it is, what is wrong, and what to do about it."""

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
