"""Where tests find the repository and the golden tables."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent
REPOSITORY = TESTS.parent
CASES = TESTS / "cases"
