"""The reference page of problems: each code with an example, one of the bad policies and what is told of it."""

from pathlib import Path

from reconciler.policy.words import CODES

HEAD = """\
# Problems

What `reconciler validate` can tell, and an example of each. Every problem of every file is told in one run: with its
place, the line it stands in, and what to do about it. The exit code is 3 when there is an error;
warnings alone leave it at 0.

The examples are the files of `tests/policies/bad`. This page is written by
`pytest tests/unit/policy/test_bad_policies.py --record`.
"""


def page(bad: Path, elsewhere: dict[str, str]) -> str:
    """The page; `elsewhere` says of codes without an example file what they look like."""
    parts = [HEAD]
    for code, title in CODES:
        parts.append(f"## {code}: {title}\n")
        parts += [
            f"```\n$ reconciler validate {case_of(recorded).name}\n{recorded.read_text()}```\n"
            for recorded in sorted(bad.glob(f"{code}-*.txt"))
        ]
        if code in elsewhere:
            parts.append(f"{elsewhere[code]}\n")
    return "\n".join(parts)


def case_of(recorded: Path) -> Path:
    """The file or folder that was validated."""
    folder = recorded.with_suffix("")
    return folder if folder.is_dir() else folder.with_suffix(".yaml")
