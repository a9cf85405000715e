"""What is said of statuses. Reasons hold these as data."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.plan.status.reasons import ProblemCount


def problem_words(count: ProblemCount) -> str:
    """2 problems."""
    return f"{count.problems} problems" if count.problems else "no problem"


WORDS: Mapping[type, Callable[[Any], str]] = {ProblemCount: problem_words}
