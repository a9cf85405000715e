"""A finding is one place where the tree breaks a rule, with the way out."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Finding:
    """One broken rule, in one place."""

    path: str
    line: int
    rule: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}. Remedy: {self.remedy}."
