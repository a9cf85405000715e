"""Writes what a long run found: what, how many, how many failed, from which seed, at which revision."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Result:
    """One line of evidence."""

    name: str
    what: str
    count: int
    failures: int
    seed: int = 0
    figures: dict[str, float | int | str] | None = None


@dataclass(frozen=True)
class Recorder:
    """Where results go."""

    folder: Path

    def write(self, result: Result) -> None:
        """Replaces the last result of that name, and says it."""
        content = {
            "what": result.what,
            "count": result.count,
            "failures": result.failures,
            "seed": result.seed,
            "revision": revision(),
            **({"figures": result.figures} if result.figures else {}),
        }
        text = json.dumps(content, indent=2)
        (self.folder / f"{result.name}.json").write_text(text + "\n")
        print(f"\n{result.name}: {text}")


def revision() -> str:
    """The commit, and whether the tree differs from it; the results themselves don't count."""
    told = _git("describe", "--always", "--abbrev=12")
    changed = _git("status", "--porcelain", "--", ".", ":!tests/results")
    return f"{told}+changes" if changed else told


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False
    )
    return done.stdout.strip()
