"""GitPython reads repositories without a process; what it cannot hold within bounds is left to the hardened process."""

import gc
import itertools
import os
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import gitdb.stream  # type: ignore[import-untyped]
import pytest

from reconciler.sources.repository import in_process
from reconciler.sources.repository.address import Unfit, check_layout
from reconciler.sources.repository.commit import GitObjects
from reconciler.sources.repository.commit import Repository as OnDisk
from reconciler.sources.repository.object_database import LARGEST_OBJECT_BYTES
from reconciler.sources.repository.process import Session
from reconciler.sources.walk import Refused, SourceBounds
from tests.unit.sources.repository.pack_stage import (
    BLOB,
    OFS_DELTA,
    REF_DELTA,
    delta,
    entry,
    header,
    identity_of,
    write_pack,
)
from tests.unit.sources.stage import LINK, POLICY, SUBMODULE, Repository, codes, put_first, read, texts

FILES: dict[str, bytes | tuple[str, bytes]] = {
    "policies/a.yaml": POLICY,
    "policies/deep/er/b.yaml": b"1\n",
    "policies/link.yaml": (LINK, b"a.yaml"),
    "policies/module": (SUBMODULE, b"1" * 40),
    "policies/caf\u00e9.yaml": b"2\n",
    "templates/x.yaml.j2": b"3\n",
    "other/c.yaml": b"4\n",
}

WITHOUT_PROCESSES = """
import sys
STARTS = {"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}
def refuse(event, arguments):
    if event in STARTS:
        raise SystemExit(f"{event} {arguments}")
sys.addaudithook(refuse)
from reconciler.sources.walk import SourceBounds
from reconciler.sources.git import GitPlace, read_revision
assert "git" not in sys.modules and "gitdb" not in sys.modules
for revision in sys.argv[2:]:
    bundle = read_revision(GitPlace(sys.argv[1], revision, "policies"), SourceBounds())
    print(bundle.revision, len(bundle.policies), *(each.sentence for each in bundle.problems))
import git
assert git.Git.GIT_PYTHON_GIT_EXECUTABLE is None
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "policies.git")


def session(seconds: float = 20, bounds: SourceBounds | None = None) -> Session:
    return Session("policies", bounds or SourceBounds(), time.monotonic() + seconds, Event())


def left_to_git(repository: Path, use: Callable[[in_process.GitPythonObjects], Any]) -> str:
    """Why the library does not read it; a test that gets here did not wait for long."""
    began = time.monotonic()
    with pytest.raises(Unfit) as unfit, in_process.opened(OnDisk(str(repository)), session()) as objects:
        use(objects)
    assert time.monotonic() - began < 10
    return str(unfit.value)


def test_reading_starts_no_process_and_needs_no_git(repository: Repository, tmp_path: Path) -> None:
    first, second = repository.commits([{"policies/a.yaml": b"1"}, {"policies/a.yaml": b"2"}])
    repository.git("tag", "--annotate", "--message", "", "v1", first)
    repository.git("gc", "--quiet")
    command = [sys.executable, "-c", WITHOUT_PROCESSES, str(repository.folder)]
    environment = {"PATH": "", "HOME": str(tmp_path), "GIT_TRACE": str(tmp_path / "trace")}
    done = subprocess.run(
        [*command, "main", "HEAD", "v1", "main~1", first],
        env=environment, cwd=repository.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.split("\n")[:-1] == [f"{commit} 1" for commit in (second, second, first, first, first)]
    assert not (tmp_path / "trace").exists()


def test_commands_that_read_no_repository_do_not_import_the_library(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    program = "import sys; from reconciler.cli.main import main; main({}); print('git' in sys.modules)"
    for arguments in (["--help"], ["validate", "policies"]):
        done = subprocess.run(
            [sys.executable, "-c", program.format(arguments)],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.endswith("False\n")


@pytest.mark.parametrize("packed", ["loose", "packed", "deep chains"])
def test_both_readers_tell_the_same(repository: Repository, packed: str) -> None:
    long = b"".join(b"line %d\n" % number for number in range(400))
    history = [{**FILES, "policies/a.yaml": long.replace(b"line 7", b"line %d" % number)} for number in range(70)]
    commits = repository.commits(history)
    if packed == "loose":
        for pack in (repository.folder / "objects" / "pack").glob("*.pack"):
            shutil.move(pack, repository.folder / "moved.pack")
            repository.git("unpack-objects", "-q", stdin=(repository.folder / "moved.pack").read_bytes())
        for index in (repository.folder / "objects" / "pack").iterdir():
            index.unlink()
    elif packed == "deep chains":
        repository.git("repack", "-q", "-a", "-d", "-f", "--depth=60", "--window=80")
    repository.git("pack-refs", "--all")
    one = OnDisk(str(repository.folder))
    by_git = GitObjects(one, session())
    with in_process.opened(one, session()) as by_library:
        for commit in commits[::10]:
            for areas in (("policies", "templates"), ("",), ("nothing",), ("policies/a.yaml",), ("policies/deep",)):
                entries = by_git.entries(commit, areas)
                assert by_library.entries(commit, areas) == entries
            everything = by_git.entries(commit, ("",)).values()
            wanted = sorted({each.id for each in everything if not each.is_submodule})
            assert by_library.contents(wanted, 1 << 20) == by_git.contents(wanted, 1 << 20)
        for revision in ("main", "HEAD", "refs/heads/main", "heads/main", "main~3^1~2", "main^0", commits[4]):
            assert by_library.resolve(revision) == repository.git("rev-parse", revision)


def test_the_order_in_which_a_name_is_looked_for_is_git_s(repository: Repository) -> None:
    first, second = repository.commits([{"policies/a.yaml": b"1"}, {"policies/a.yaml": b"2"}])
    repository.git("tag", "both", first)
    repository.git("branch", "both", second)
    repository.git("update-ref", "refs/remotes/origin/x", first)
    repository.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/x")
    repository.git("branch", "config", first)
    assert read(repository.folder, "both").revision == first
    assert read(repository.folder, "heads/both").revision == second
    assert read(repository.folder, "origin").revision == first
    assert read(repository.folder, "config").revision == first
    with in_process.opened(OnDisk(str(repository.folder)), session()) as objects:
        assert [objects.resolve(each) for each in ("both", "heads/both", "origin")] == [first, second, first]


def worktree(repository: Repository) -> Path:
    linked = repository.folder.parent / "linked"
    repository.git("worktree", "add", "--quiet", str(linked), "main")
    return linked / ".git"


def alternates(repository: Repository) -> Path:
    clone = repository.folder.parent / "clone.git"
    repository.git("clone", "--quiet", "--bare", "--shared", str(repository.folder), str(clone))
    return clone


def partial(repository: Repository) -> Path:
    clone = repository.folder.parent / "clone.git"
    address = repository.folder.as_uri()
    repository.git("clone", "--quiet", "--bare", "--filter=blob:none", address, str(clone))
    return clone


def settings(text: str) -> Callable[[Repository], Path]:
    def change(repository: Repository) -> Path:
        with (repository.folder / "config").open("a") as config:
            config.write(text)
        return repository.folder

    return change


def planted(path: str, plant: Callable[[Path], object]) -> Callable[[Repository], Path]:
    def change(repository: Repository) -> Path:
        target = repository.folder / path
        if target.is_dir() and not target.is_symlink():
            shutil.move(target, repository.folder.parent / "moved")
        else:
            target.unlink(missing_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        plant(target)
        return repository.folder

    return change


LAYOUTS: dict[str, Callable[[Repository], Path]] = {
    "a linked work tree": worktree,
    "alternates": alternates,
    "a partial clone": partial,
    "an included file of settings": settings("[include]\n\tpath = /nowhere\n"),
    "an included file in capitals": settings('[INCLUDEIF "gitdir:/"]\n\tpath = /nowhere\n'),
    "another format of references": settings("[extensions]\n\trefStorage = reftable\n"),
    "a folder of reftables": planted("reftable", Path.mkdir),
    "a .git file within": planted(".git", lambda path: path.write_text("gitdir: /nowhere\n")),
    "a common folder": planted("commondir", lambda path: path.write_text("/nowhere\n")),
    "grafts": planted("info/grafts", lambda path: path.write_text("")),
    "a FIFO for references": planted("packed-refs", os.mkfifo),
    "a FIFO for HEAD": planted("HEAD", os.mkfifo),
    "a link for HEAD": planted("HEAD", lambda path: path.symlink_to("/etc/hostname")),
    "a link for settings": planted("config", lambda path: path.symlink_to("/etc/hostname")),
    "a link for objects": planted("objects", lambda path: path.symlink_to(path.parent.parent / "moved")),
    "a link for packs": planted("objects/pack", lambda path: path.symlink_to(path.parents[2] / "moved")),
    "a link for references": planted("refs", lambda path: path.symlink_to(path.parent.parent / "moved")),
    "a FIFO for a pack": planted("objects/pack/pack-9.pack", os.mkfifo),
    "a FIFO for an index": planted("objects/pack/pack-9.idx", os.mkfifo),
    "very long references": planted("packed-refs", lambda path: path.write_bytes(b"#" * (17 << 20))),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_that_is_not_plain_is_left_to_the_process(name: str, repository: Repository) -> None:
    repository.commit({"policies/a.yaml": POLICY})
    check_layout(str(repository.folder), is_ours=False, environment={})
    git_dir = LAYOUTS[name](repository)
    with pytest.raises(Unfit):
        check_layout(str(git_dir), is_ours=False, environment={})
    for misleading in ("GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"):
        with pytest.raises(Unfit):
            check_layout(str(repository.folder), is_ours=False, environment={misleading: "/nowhere"})


@pytest.mark.parametrize("name", ["a linked work tree", "alternates", "grafts"])
def test_what_is_left_to_the_process_is_read_all_the_same(name: str, repository: Repository) -> None:
    commit = repository.commit({"policies/a.yaml": POLICY})
    git_dir = LAYOUTS[name](repository)
    bundle = read(git_dir.parent if git_dir.name == ".git" else git_dir)
    assert (bundle.revision, texts(bundle)) == (commit, {"policies/a.yaml": POLICY})


def test_longer_ids_are_read_by_the_process(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "longer.git", ids="sha256")
    commit = repository.commit({"policies/a.yaml": POLICY})
    with pytest.raises(Unfit):
        check_layout(str(repository.folder), is_ours=False, environment={})
    assert read(repository.folder).revision == commit


REFERENCES: dict[str, Callable[[Path], object]] = {
    "in a circle": lambda path: path.write_text("ref: refs/heads/main\n"),
    "to one that is not there": lambda path: path.write_text("ref: refs/heads/none\n"),
    "out of the repository": lambda path: path.write_text("ref: ../../../etc/passwd\n"),
    "of nonsense": lambda path: path.write_bytes(b"\xff\0nonsense"),
    "to nothing": lambda path: path.write_text("1" * 40 + "\n"),
    "as a FIFO": os.mkfifo,
    "as a link": lambda path: path.symlink_to("/etc/passwd"),
    "of any length": lambda path: path.write_bytes(b"ref: " * 10_000),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_that_leads_nowhere_ends(name: str, repository: Repository) -> None:
    repository.commit({"policies/a.yaml": POLICY})
    main = repository.folder / "refs" / "heads" / "main"
    main.unlink()
    REFERENCES[name](main)
    left_to_git(repository.folder, lambda objects: objects.resolve("main"))
    left_to_git(repository.folder, lambda objects: objects.resolve("HEAD"))


@pytest.fixture
def allocated(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many bytes the library allocates at once."""
    sizes: list[int] = []
    allocate = gitdb.stream.allocate_memory

    def record(size: int) -> Any:
        sizes.append(size)
        return allocate(min(size, 1 << 26))

    monkeypatch.setattr(gitdb.stream, "allocate_memory", record)
    yield sizes
    assert max(sizes, default=0) <= LARGEST_OBJECT_BYTES


ONE, TWO = b"\1" * 20, b"\2" * 20
BASE = b"base\n" * 20
COPY = b"\x90\x64"  # a hundred bytes from the beginning
HUGE = 1 << 40
BOMBS: dict[str, dict[bytes, bytes]] = {
    "a delta based on itself": {ONE: entry(REF_DELTA, delta(100, 100, COPY), ONE)},
    "deltas based on each other": {
        ONE: entry(REF_DELTA, delta(100, 100, COPY), TWO),
        TWO: entry(REF_DELTA, delta(100, 100, COPY), ONE),
    },
    "a delta based on what is not there": {ONE: entry(REF_DELTA, delta(100, 100, COPY), TWO)},
    "a delta based on what comes after it": {ONE: entry(OFS_DELTA, delta(100, 100, COPY), b"\0")},
    "a delta based on what is before the pack": {ONE: entry(OFS_DELTA, delta(100, 100, COPY), b"\x7f")},
    "an offset without end": {ONE: entry(OFS_DELTA, delta(100, 100, COPY), b"\xff" * 1_000)},
    "a delta that announces a terabyte": {
        ONE: entry(REF_DELTA, delta(100, HUGE, COPY), TWO), TWO: entry(BLOB, BASE),
    },
    "a delta of a terabyte's base": {ONE: entry(REF_DELTA, delta(HUGE, 100, COPY), TWO), TWO: entry(BLOB, BASE)},
    "a delta that copies without end": {
        ONE: entry(REF_DELTA, delta(100, 100, COPY * 100_000), TWO), TWO: entry(BLOB, BASE),
    },
    "a size without end": {ONE: b"\xb0" + b"\xff" * 100_000 + zlib.compress(b"x")},
    "an announced terabyte": {ONE: entry(BLOB, b"x", size=HUGE)},
    "less than announced": {ONE: entry(BLOB, b"x", size=1_000)},
    "more than announced": {ONE: entry(BLOB, bytes(1 << 20), size=10)},
    "an object of no kind": {ONE: entry(5, b"x")},
    "an object that is not what its id says": {ONE: entry(BLOB, b"x")},
    "data that cannot be unpacked": {ONE: header(BLOB, 10) + b"\0" * 40},
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_pack_that_lies_takes_neither_memory_nor_time(
    name: str, repository: Repository, allocated: list[int]
) -> None:
    repository.commit({"policies/a.yaml": POLICY})
    write_pack(repository.folder, BOMBS[name])
    left_to_git(repository.folder, lambda objects: objects.contents([ONE.hex()], 1 << 20))


def test_a_long_chain_is_not_followed(repository: Repository, allocated: list[int]) -> None:
    repository.commit({"policies/a.yaml": POLICY})
    ids = [number.to_bytes(20, "big") for number in range(1, 1_000)]
    entries = {one: entry(REF_DELTA, delta(100, 100, COPY), base) for one, base in itertools.pairwise(ids)}
    write_pack(repository.folder, {**entries, ids[-1]: entry(BLOB, BASE)})
    left_to_git(repository.folder, lambda objects: objects.contents([ids[0].hex()], 1 << 20))


@pytest.mark.parametrize("place", [0, 1 << 30, 0xFFFFFFFF, 13])
def test_an_index_that_lies_is_not_believed(repository: Repository, place: int) -> None:
    repository.commit({"policies/a.yaml": POLICY})
    content = b"content"
    identity = identity_of("blob", content)
    write_pack(repository.folder, {identity: entry(BLOB, content)})
    with in_process.opened(OnDisk(str(repository.folder)), session()) as objects:
        assert objects.contents([identity.hex()], 100) == {identity.hex(): content}
    write_pack(repository.folder, {identity: entry(BLOB, content)}, {identity: place})
    left_to_git(repository.folder, lambda objects: objects.contents([identity.hex()], 100))


def loose(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


LOOSE: dict[str, Callable[[Path], object]] = {
    "a FIFO": os.mkfifo,
    "a link": lambda path: path.symlink_to("/etc/passwd"),
    "a folder": Path.mkdir,
    "another's content": loose(zlib.compress(b"blob 1\0x")),
    "more than it says": loose(zlib.compress(b"blob 1\0" + bytes(1 << 24))),
    "a terabyte announced": loose(zlib.compress(b"blob %d\0x" % HUGE)),
    "a number without end": loose(zlib.compress(b"blob " + b"9" * 8_000 + b"\0x")),
    "a negative size": loose(zlib.compress(b"blob -1\0x")),
    "no header": loose(zlib.compress(bytes(10_000))),
    "nothing": loose(b""),
}


@pytest.mark.parametrize("name", LOOSE)
def test_a_loose_object_that_lies_is_left_to_the_process(name: str, repository: Repository) -> None:
    repository.commit({"policies/a.yaml": POLICY})
    path = repository.folder / "objects" / "11" / ("1" * 38)
    path.parent.mkdir()
    LOOSE[name](path)
    left_to_git(repository.folder, lambda objects: objects.contents(["1" * 40], 1 << 20))


def test_a_folder_of_objects_that_leads_elsewhere_is_not_entered(repository: Repository, tmp_path: Path) -> None:
    repository.commit({"policies/a.yaml": POLICY})
    identity = identity_of("blob", b"secret").hex()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / identity[2:]).write_bytes(zlib.compress(b"blob 6\0secret"))
    (repository.folder / "objects" / identity[:2]).symlink_to(elsewhere)
    left_to_git(repository.folder, lambda objects: objects.contents([identity], 1 << 20))


def test_a_tree_of_trees_without_end_ends(repository: Repository) -> None:
    """Ten names a level, thirty levels: more paths than there is memory for."""
    tree = repository.git("mktree", stdin=f"100644 blob {blob_of(repository)}\tx.yaml\n".encode())
    for _ in range(30):
        lines = "".join(f"040000 tree {tree}\tf{number}\n" for number in range(10))
        tree = repository.git("mktree", stdin=lines.encode())
    commit = repository.git("commit-tree", tree, "-m", "bomb")
    bounds = SourceBounds(entries=2_000)
    with pytest.raises(Unfit), in_process.opened(OnDisk(str(repository.folder)), session(20, bounds)) as objects:
        objects.entries(commit, ("",))
    assert codes(read(repository.folder, commit, "", bounds)) == ["RC504"]


def blob_of(repository: Repository) -> str:
    return repository.git("hash-object", "-w", "--stdin", stdin=b"x\n")


def test_time_and_being_called_off_are_heeded(repository: Repository) -> None:
    commit = repository.commit({f"policies/{number}.yaml": POLICY for number in range(50)})
    one = OnDisk(str(repository.folder))
    cancelled = session()

    def after(wait: Callable[[], object], meanwhile: Session) -> None:
        with in_process.opened(one, meanwhile) as objects:
            wait()
            objects.entries(commit, ("",))

    with pytest.raises(Refused):
        after(cancelled.cancelled.set, cancelled)
    with pytest.raises(Unfit):  # its share of the time is over, and git has the rest
        after(lambda: time.sleep(0.2), session(0.4))


TREES = {
    "a number without end": b"1" * 1_000_000,
    "a name with a slash": b"100644 a/b\0" + bytes(20),
    "no name": b"100644 \0" + bytes(20),
    "half an id": b"100644 a\0" + bytes(10),
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_that_is_none_is_left_to_the_process(name: str, repository: Repository) -> None:
    tree = repository.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=TREES[name])
    text = f"tree {tree}\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx\n"
    commit = repository.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=text.encode())
    left_to_git(repository.folder, lambda objects: objects.entries(commit, ("",)))


COMMITS = {
    "a name that takes quadratic time": b"author " + b" <" * 30_000,
    "no end": b"author x <x> 0 +0000\n" * 10_000,
}


@pytest.mark.parametrize("name", COMMITS)
def test_a_commit_that_is_none_is_left_to_the_process(name: str, repository: Repository) -> None:
    tree = repository.git("mktree", stdin=b"")
    text = f"tree {tree}\n".encode() + COMMITS[name] + b"\n\nx\n"
    commit = repository.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=text)
    left_to_git(repository.folder, lambda objects: objects.entries(commit, ("",)))
    left_to_git(repository.folder, lambda objects: objects.resolve(commit))


def test_nothing_stays_open(repository: Repository) -> None:
    repository.commit({"policies/a.yaml": POLICY})
    repository.git("repack", "-q", "-a", "-d")
    read(repository.folder)
    gc.collect()  # what other tests left open
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        assert not read(repository.folder).problems
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert str(repository.folder) not in Path("/proc/self/maps").read_text()


def test_what_the_library_cannot_read_the_process_tells_of(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit({"policies/a.yaml": POLICY})
    put_first(monkeypatch, tmp_path / "bin", "git", f"#!/bin/sh\necho called >>{tmp_path}/calls\nexit 1\n")
    assert read(repository.folder).revision == commit
    assert not (tmp_path / "calls").exists()
    (repository.folder / "info").mkdir(exist_ok=True)
    (repository.folder / "info" / "grafts").touch()
    assert codes(read(repository.folder)) == ["RC515"]
    assert (tmp_path / "calls").exists()
