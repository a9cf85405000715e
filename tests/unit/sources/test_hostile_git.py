"""Repositories that try to run something: each way in is laid, a canary at its end, and nothing sings."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model.bundle import Bundle
from reconciler.model.problem import Origin
from reconciler.sources.git import Access, GitPlace, last_changes, read_revision
from reconciler.sources.walk import SourceBounds
from tests.unit.sources.stage import POLICY, SSH, SUBMODULE, Repository, codes, put_first, read, sentences, texts

HOOKS = (
    "post-checkout", "reference-transaction", "pre-auto-gc", "post-index-change", "fsmonitor-watchman", "pre-commit",
    "post-merge", "update", "pre-receive", "post-receive", "proc-receive",
)  # fmt: skip

# Every setting of git that names a program, and those that widen what it may speak.
SETTINGS = """
[core]
	fsmonitor = {canary}
	hooksPath = {hooks}
	sshCommand = {canary}
	gitProxy = {canary}
	pager = {canary}
	editor = {canary}
	askPass = {canary}
	alternateRefsCommand = {canary}
[credential]
	helper = "!{canary}"
[filter "evil"]
	clean = {canary}
	smudge = {canary}
	process = {canary}
	required = true
[filter "lfs"]
	smudge = {canary}
	process = {canary}
[diff "evil"]
	command = {canary}
	textconv = {canary}
[merge "evil"]
	driver = {canary}
[uploadpack]
	packObjectsHook = {canary}
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[alias]
	ls-tree = "!{canary}"
	cat-file = "!{canary}"
	rev-parse = "!{canary}"
[pager]
	ls-tree = {canary}
[url "ext::{canary} "]
	insteadOf = https://
[submodule "evil"]
	update = "!{canary}"
	url = ext::{canary}
[remote "origin"]
	url = ext::{canary}
	uploadpack = {canary}
	promisor = true
[extensions]
	partialClone = origin
[gpg]
	program = {canary}
[trace2]
	normalTarget = {sung}
"""

FILES: dict[str, bytes | tuple[str, bytes]] = {
    "policies/a.yaml": POLICY,
    "policies/.gitattributes": b"* filter=evil diff=evil merge=evil\n",
    ".gitattributes": b"* filter=evil diff=evil merge=evil\n",
    ".gitmodules": b'[submodule "evil"]\n\tpath = module\n\turl = ext::canary\n\tupdate = !canary\n',
    "module": (SUBMODULE, b"1" * 40),
}


@pytest.fixture
def sung(tmp_path: Path) -> Path:
    """The file that a canary leaves behind, with the name of what called it."""
    return tmp_path / "sung"


@pytest.fixture
def hostile(tmp_path: Path, sung: Path) -> Iterator[Repository]:
    repository = Repository(tmp_path / "policies.git")
    repository.commit(FILES)
    canary = _canary(tmp_path / "canary", sung)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for folder in (hooks, repository.folder / "hooks"):
        folder.mkdir(exist_ok=True)
        for hook in HOOKS:
            _canary(folder / hook, sung)
    with (repository.folder / "config").open("a") as config:
        config.write(SETTINGS.format(canary=canary, hooks=hooks, sung=sung))
    (repository.folder / "info").mkdir(exist_ok=True)
    (repository.folder / "info" / "attributes").write_text("* filter=evil diff=evil\n")
    yield repository
    assert not sung.exists(), sung.read_text()


def _canary(program: Path, sung: Path) -> Path:
    program.write_text(f'#!/bin/sh\necho "$0 $*" >>{sung}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def remote(address: str, tmp_path: Path, revision: str = "main") -> Bundle:
    access = Access(cache=tmp_path / "cache")
    return read_revision(GitPlace(address, revision, "policies"), SourceBounds(deadline_seconds=60), access)


def test_a_canary_would_be_heard(hostile: Repository, sung: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile.git("hook", "run", "pre-commit")
    assert sung.exists()
    sung.unlink()


def test_nothing_configured_in_a_repository_runs(hostile: Repository) -> None:
    bundle = read(hostile.folder)
    assert texts(bundle) == {"policies/a.yaml": POLICY}
    assert not bundle.problems


def test_nothing_configured_in_a_repository_runs_for_its_history(
    hostile: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = read(hostile.folder).revision
    place, origin = GitPlace(str(hostile.folder), commit), Origin("policies/a.yaml", 1, commit)
    (in_this_process,) = last_changes(place, [origin], SourceBounds())
    with (hostile.folder / "config").open("a") as config:
        config.write("[include]\n\tpath = /nowhere\n")  # so that git reads, in a process
    (by_git,) = last_changes(place, [origin], SourceBounds())
    assert by_git == in_this_process
    assert by_git.commit == commit


def test_nothing_configured_for_the_user_or_the_system_runs(
    hostile: Repository, tmp_path: Path, sung: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SETTINGS.format(canary=tmp_path / "canary", hooks=tmp_path / "hooks", sung=sung)
    (tmp_path / ".gitconfig").write_text(settings)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path / ".gitconfig"))
    for name in ("GIT_SSH_COMMAND", "GIT_SSH", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_PAGER", "GIT_EXTERNAL_DIFF"):
        monkeypatch.setenv(name, str(tmp_path / "canary"))
    monkeypatch.setenv("GIT_TRACE", str(sung))
    assert not read(hostile.folder).problems
    assert codes(remote("https://127.0.0.1:9/x", tmp_path)) == ["RC515"]


def test_what_is_missing_is_fetched_from_nowhere(hostile: Repository) -> None:
    blob = hostile.git("-c", "alias.rev-parse=", "rev-parse", "main:policies/a.yaml")
    (hostile.folder / "objects" / blob[:2] / blob[2:]).unlink()
    assert codes(read(hostile.folder)) in (["RC501"], ["RC515"])


def test_nothing_runs_on_the_way_to_a_remote(
    hostile: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_first(monkeypatch, tmp_path / "bin", "ssh", SSH)
    # The far side is its owner's affair; only what is on this side may not sing.
    hostile.git("config", "--unset", "core.alternateRefsCommand")
    bundle = remote(f"git@example.com:{hostile.folder}", tmp_path)
    assert texts(bundle) == {"policies/a.yaml": POLICY}


@pytest.mark.parametrize("address", ["ext::{canary}", "--upload-pack={canary}", "-u{canary}", "file://{repository}"])
def test_addresses_that_run_something_are_not_even_tried(hostile: Repository, tmp_path: Path, address: str) -> None:
    text = address.format(canary=tmp_path / "canary", repository=hostile.folder)
    assert codes(remote(text, tmp_path)) == ["RC511"]
    assert not (tmp_path / "cache").exists()


def test_a_revision_writes_no_file(hostile: Repository, tmp_path: Path) -> None:
    for revision in (f"--output={tmp_path}/sung", "-O", "--upload-pack=x"):
        assert codes(read(hostile.folder, revision)) == ["RC512"]
        assert codes(remote("git@example.com:x", tmp_path, revision)) == ["RC512"]


def test_settings_that_cannot_be_read_end_in_time(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "policies.git")
    repository.commit(FILES)
    os.mkfifo(tmp_path / "fifo")
    (repository.folder / "config").write_text(f"[include]\n\tpath = {tmp_path}/fifo\n")
    bundle = read_revision(GitPlace(str(repository.folder), "main"), SourceBounds(deadline_seconds=0.3))
    assert codes(bundle) == ["RC514"]
    assert "more than 0.3 s" in sentences(bundle)
