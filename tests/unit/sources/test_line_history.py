"""Who last changed a line: as git blame tells it, within bounds, and with an end where nothing more is known."""

import contextlib
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.model.problem import LastChange, Origin
from reconciler.sources.git import MOST_LINES, GitPlace, last_changes, place_before
from reconciler.sources.repository import in_process
from reconciler.sources.repository.address import Unfit
from reconciler.sources.walk import SourceBounds
from tests.unit.sources.repository.test_in_process import LAYOUTS
from tests.unit.sources.stage import LINK, Repository

FILE = "policies/a.yaml"
Edit = tuple[int, int, int]  # at which line, how many go, how many come


@pytest.fixture(params=["in this process", "by git"])
def repository(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Repository:
    if request.param == "by git":
        monkeypatch.setattr(in_process, "opened", refuse)
    return Repository(tmp_path / "policies.git")


def refuse(*_: object) -> contextlib.AbstractContextManager[in_process.GitPythonObjects]:
    raise Unfit("left to git")


def text(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def asked(repository: Path, revision: str, *lines: int, bounds: SourceBounds | None = None) -> tuple[LastChange, ...]:
    origins = [Origin(FILE, line, revision) for line in lines]
    return last_changes(GitPlace(str(repository), revision), origins, bounds or SourceBounds())


def blamed(repository: Repository, revision: str) -> list[str]:
    told = repository.git("blame", "--root", "-l", "-s", revision, "--", FILE)
    return [line.split()[0] for line in told.splitlines()]


def edited(histories: Sequence[Edit]) -> list[bytes]:
    """Versions of a file in which no two lines are the same."""
    lines = [f"line {number}" for number in range(12)]
    fresh = len(lines)
    versions = [text(*lines)]
    for at, gone, come in histories:
        start = at % (len(lines) + 1)
        lines[start : start + gone] = [f"line {fresh + number}" for number in range(come)]
        fresh += come
        versions.append(text(*lines))
    return versions


EDITS = some.lists(some.tuples(some.integers(0, 20), some.integers(0, 3), some.integers(0, 3)), min_size=1, max_size=12)


@settings(max_examples=12, deadline=None)
@given(histories=EDITS, packed=some.booleans())
def test_the_commit_is_the_one_that_git_blames(
    tmp_path_factory: pytest.TempPathFactory, histories: Sequence[Edit], packed: bool
) -> None:
    repository = Repository(tmp_path_factory.mktemp("history") / "policies.git")
    versions = edited(histories)
    # Other files change between: their commits leave the line alone.
    commits = repository.commits(
        [{FILE: each, "policies/b.yaml": b"%d" % (number // 2)} for number, each in enumerate(versions)]
    )
    if packed:
        repository.git("gc", "--quiet")
    blame = blamed(repository, commits[-1]) if versions[-1] else []
    for first in range(1, len(blame) + 1, MOST_LINES):
        some_lines = range(first, min(first + MOST_LINES, len(blame) + 1))
        told = asked(repository.folder, commits[-1], *some_lines)
        assert [each.commit for each in told] == [blame[line - 1] for line in some_lines]
    assert asked(repository.folder, commits[-1], len(blame) + 1) == ()


def test_commit_author_date_and_subject_are_told(repository: Repository) -> None:
    tree = repository.git("mktree", stdin=b"")
    blob = repository.git("hash-object", "-w", "--stdin", stdin=b"a\n")
    inner = repository.git("mktree", stdin=f"100644 blob {blob}\ta.yaml\n".encode())
    tree = repository.git("mktree", stdin=f"040000 tree {inner}\tpolicies\n".encode())
    message = "Keep \x1b[31mmore\u202e nodes\n\nbecause of the launch\n"
    author = "author J\u00f6rg \x07 Example <j@example.com> 1762000000 -0800"
    head = f"tree {tree}\n{author}\ncommitter c <c@example.com> 1 +0000\n"
    commit = repository.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=f"{head}\n{message}".encode())
    (told,) = asked(repository.folder, commit, 1)
    assert told == LastChange(
        Origin(FILE, 1, commit), commit, "J\u00f6rg \\x07 Example", "2025-11-01", "Keep \\x1b[31mmore\\u202e nodes"
    )


def test_a_merge_is_followed_to_where_the_line_comes_from(repository: Repository) -> None:
    (base,) = repository.commits([{FILE: text("a", "b", "c", "d")}])
    repository.git("branch", "side", base)
    (first,) = repository.commits([{FILE: text("a1", "b", "c", "d")}])
    (second,) = repository.commits([{FILE: text("a", "b", "c", "d1")}], "side")
    blob = repository.git("hash-object", "-w", "--stdin", stdin=text("a1", "b", "merged", "d1"))
    inner = repository.git("mktree", stdin=f"100644 blob {blob}\ta.yaml\n".encode())
    tree = repository.git("mktree", stdin=f"040000 tree {inner}\tpolicies\n".encode())
    merge = repository.git("commit-tree", tree, "-p", first, "-p", second, "-m", "merge")
    told = asked(repository.folder, merge, 1, 2, 3, 4)
    assert [each.commit for each in told] == [first, base, merge, second] == blamed(repository, merge)


def test_a_shallow_clone_ends_where_it_was_cut(repository: Repository, tmp_path: Path) -> None:
    commits = repository.commits([{FILE: text(*("x" * (number < 1) + "a", f"{number}", "c"))} for number in range(5)])
    command = ["clone", "--quiet", "--bare", "--depth=2", repository.folder.as_uri(), str(tmp_path / "shallow")]
    repository.git(*command)
    told = asked(tmp_path / "shallow", commits[-1], 1, 2, 3)
    assert [(each.commit, each.unknown_before) for each in told] == [
        ("", commits[-2]),
        (commits[-1], ""),
        ("", commits[-2]),
    ]


@pytest.mark.parametrize("name", ["a linked work tree", "alternates", "longer ids"])
def test_what_is_left_to_the_process_tells_its_history(name: str, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "policies.git", ids="sha256" if name == "longer ids" else "sha1")
    commits = repository.commits([{FILE: text("a", f"{number}")} for number in range(3)])
    git_dir = LAYOUTS[name](repository) if name in LAYOUTS else repository.folder
    folder = git_dir.parent if git_dir.name == ".git" else git_dir
    assert [each.commit for each in asked(folder, commits[-1], 1, 2)] == [commits[0], commits[-1]]


def test_a_history_with_a_hole_ends_there(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "policies.git")
    commits = repository.commits([{FILE: text("a", f"{number}")} for number in range(5)])
    for pack in (repository.folder / "objects" / "pack").glob("*.pack"):
        content = pack.read_bytes()
        pack.unlink()
        pack.with_suffix(".idx").unlink()
        repository.git("unpack-objects", "-q", stdin=content)
    (repository.folder / "objects" / commits[1][:2] / commits[1][2:]).unlink()
    (told,) = asked(repository.folder, commits[-1], 1)
    assert (told.commit, told.unknown_before) == ("", commits[2])


def test_time_and_lines_are_bounded(repository: Repository) -> None:
    commits = repository.commits([{FILE: text("a", f"{number}")} for number in range(100)])
    began = time.monotonic()
    (told,) = asked(repository.folder, commits[-1], 1, bounds=SourceBounds(history_seconds=0.01))
    assert time.monotonic() - began < 2
    assert told.commit == ""
    assert told.unknown_before in commits[1:]
    (told,) = asked(repository.folder, commits[-1], 1)
    assert told.commit == commits[0]
    assert len(asked(repository.folder, commits[-1], *[1] * 20)) == MOST_LINES


def test_what_is_no_line_of_a_file_is_not_told_of(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "policies.git")
    commit = repository.commit({FILE: text("a"), "policies/b.yaml": (LINK, b"a.yaml")})
    place = GitPlace(str(repository.folder), commit)
    for origin in (Origin("policies", 1, commit), Origin("none", 1, commit), Origin("policies/b.yaml", 1, commit)):
        assert last_changes(place, [origin], SourceBounds()) == ()
    assert asked(repository.folder, commit, 0, 2) == ()
    assert asked(repository.folder, "main", 1) == ()
    assert asked(tmp_path / "nowhere", commit, 1) == ()


def test_lines_that_are_alike_are_matched_in_order_and_in_bounded_time() -> None:
    after, before = [b"a", b"x", b"b", b"x", b"c"], [b"x", b"b", b"x"]
    assert [place_before(after, before, line) for line in range(5)] == [None, 0, 1, 2, None]
    same = [b"x", b"y"] * 20_000
    began = time.process_time()
    with pytest.raises(Unfit):
        place_before([b"1", *same, b"2"], [b"3", *same[1:], b"4"], 7)
    assert place_before(same, [*same, b"z"], 7) == 7
    assert place_before([b"z", *same], same, 7) == 6
    assert time.process_time() - began < 5


def test_no_git_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository(tmp_path / "policies.git")
    commits = repository.commits([{FILE: text("a", f"{number}")} for number in range(5)])
    asked(repository.folder, commits[-1], 1)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a process is started")

    monkeypatch.setattr(subprocess, "Popen", fail)
    (told,) = asked(repository.folder, commits[-1], 1)
    assert told.commit == commits[0]
