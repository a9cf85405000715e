"""Sources that keep up: what changes is seen without a restart, and nothing bad takes the place of what was good."""

import os
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.model.bundle import Bundle
from reconciler.ports import Source
from reconciler.sources.git import Access, GitPlace
from reconciler.sources.walk import SourceBounds
from reconciler.sources.watched import BundleOrigin, PolledRepository, WatchedFolders, WatchedSource
from tests.unit.sources.stage import POLICY, SSH, Repository, codes, put_first, texts

PATIENCE_SECONDS = 20.0  # on a busy machine; none of it is spent otherwise


class Follower:
    """Watches a place and waits for what it should come to."""

    def __init__(self, place: BundleOrigin) -> None:
        self.news: queue.Queue[None] = queue.Queue()
        self.judge: Callable[[Bundle], bool] = lambda bundle: b"bad" not in texts(bundle).values()
        self.source = WatchedSource(place, self._is_good, lambda: self.news.put(None))
        self.source.start()
        ends = time.monotonic() + PATIENCE_SECONDS
        while not self.source.has_read:
            assert time.monotonic() < ends
            time.sleep(0.001)

    def _is_good(self, bundle: Bundle) -> bool:
        return self.judge(bundle)

    def until(self, holds: Callable[[WatchedSource], object]) -> None:
        ends = time.monotonic() + PATIENCE_SECONDS
        while not holds(self.source):
            try:
                self.news.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                pytest.fail(f"still {self.source.latest()}, refused {self.source.last_refused}")

    def until_content(self, *contents: bytes) -> None:
        self.until(lambda source: sorted(texts(source.latest()).values()) == sorted(contents))

    def until_refused(self) -> Bundle:
        self.until(lambda source: source.last_refused)
        assert self.source.last_refused
        return self.source.last_refused


Follow = Callable[[BundleOrigin], Follower]


@pytest.fixture
def follow() -> Iterator[Follow]:
    followers: list[Follower] = []

    def begin(place: BundleOrigin) -> Follower:
        followers.append(Follower(place))
        return followers[-1]

    yield begin
    for follower in followers:
        follower.source.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "policies"]


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "a.yaml").write_bytes(POLICY)
    return folder


def folders(*roots: Path) -> WatchedFolders:
    return WatchedFolders(roots, SourceBounds())


def polled(repository: Path | str, access: Access | None = None) -> PolledRepository:
    place = GitPlace(str(repository), "main", "policies")
    return PolledRepository(place, SourceBounds(), access or Access(), 0.02, random.Random(1))


def test_it_is_a_source(policies: Path) -> None:
    source: Source = WatchedSource(folders(policies), lambda _: True, lambda: None)
    before_the_first = source.latest()
    assert codes(before_the_first) == ["RC508"]
    assert not before_the_first.policies


def test_an_edit_is_seen(policies: Path, follow: Follow) -> None:
    follower = follow(folders(policies))
    follower.until_content(POLICY)
    (policies / "a.yaml").write_bytes(b"edited")
    follower.until_content(b"edited")
    (policies / "new.yaml").write_bytes(b"replaced")
    (policies / "new.yaml").rename(policies / "a.yaml")
    follower.until_content(b"replaced")
    (policies / "a.yaml").unlink()
    follower.until_content()


def test_files_in_new_folders_are_seen(policies: Path, follow: Follow) -> None:
    follower = follow(folders(policies))
    (policies / "overlays" / "prod").mkdir(parents=True)
    (policies / "overlays" / "prod" / "b.yaml").write_bytes(b"1")
    follower.until_content(POLICY, b"1")
    (policies / "overlays" / "prod" / "b.yaml").write_bytes(b"2")
    follower.until_content(POLICY, b"2")
    (policies.parent / "templates").mkdir()
    (policies.parent / "templates" / "pool.yaml.j2").write_bytes(b"template")
    follower.until(lambda source: source.latest().templates)


def test_a_swapped_mount_is_seen(tmp_path: Path, follow: Follow) -> None:
    """As a ConfigMap is mounted: each swap is one rename of the link `..data`."""
    mount = tmp_path / "mounted"
    mount.mkdir()
    (mount / "a.yaml").symlink_to("..data/a.yaml")

    def swap(name: str, content: bytes) -> None:
        (mount / name).mkdir()
        (mount / name / "a.yaml").write_bytes(content)
        (mount / "..data_tmp").symlink_to(name)
        (mount / "..data_tmp").rename(mount / "..data")

    swap("..2026_1", b"1")
    follower = follow(folders(mount))
    follower.until_content(b"1")
    swap("..2026_2", b"2")
    follower.until_content(b"2")
    swap("..2026_3", b"3")
    follower.until_content(b"3")
    assert not follower.source.last_refused


def test_a_link_above_the_folder_that_is_swapped_is_seen(tmp_path: Path, follow: Follow) -> None:
    """As git-sync does it: the folder that was named lies below the link."""
    for name in ("1", "2"):
        (tmp_path / "trees" / name / "policies").mkdir(parents=True)
        (tmp_path / "trees" / name / "policies" / "a.yaml").write_text(name)
    (tmp_path / "current").symlink_to("trees/1")
    follower = follow(folders(tmp_path / "current" / "policies"))
    follower.until_content(b"1")
    (tmp_path / "next").symlink_to("trees/2")
    (tmp_path / "next").rename(tmp_path / "current")
    follower.until_content(b"2")


def test_a_single_file_is_followed(policies: Path, follow: Follow) -> None:
    follower = follow(folders(policies / "a.yaml"))
    (policies / "other.yaml").write_bytes(b"other")
    (policies / "a.yaml").write_bytes(b"edited")
    follower.until_content(b"edited")


def test_a_folder_that_goes_and_comes_back_is_seen(policies: Path, follow: Follow) -> None:
    follower = follow(folders(policies))
    policies.rename(policies.parent / "aside")
    assert codes(follower.until_refused()) == ["RC501"]
    follower.until_content(POLICY)
    policies.mkdir()
    (policies / "a.yaml").write_bytes(b"back")
    follower.until_content(b"back")
    assert follower.source.last_refused is None


def test_a_folder_that_is_made_later_is_seen(tmp_path: Path, follow: Follow) -> None:
    root = tmp_path / "not" / "yet" / "there"
    follower = follow(folders(root))
    assert codes(follower.until_refused()) == ["RC501"]
    assert codes(follower.source.latest()) == ["RC508"]
    root.mkdir(parents=True)
    (root / "a.yaml").write_bytes(POLICY)
    follower.until_content(POLICY)


def test_bad_policies_do_not_take_the_place_of_good_ones(policies: Path, follow: Follow) -> None:
    follower = follow(folders(policies))
    good = follower.source.latest()
    (policies / "a.yaml").write_bytes(b"bad")
    assert texts(follower.until_refused()) == {f"{policies}/a.yaml": b"bad"}
    assert follower.source.latest() is good
    (policies / "a.yaml").write_bytes(b"good again")
    follower.until_content(b"good again")
    assert follower.source.last_refused is None


def test_incomplete_policies_do_not_take_the_place_of_whole_ones(policies: Path, follow: Follow) -> None:
    follower = follow(folders(policies))
    (policies / "b.yaml").symlink_to("/etc/passwd")
    assert codes(follower.until_refused()) == ["RC502"]
    follower.until_content(POLICY)


def test_a_judge_that_fails_stops_nothing(policies: Path, follow: Follow) -> None:
    follower = follow(folders(policies))

    def broken(bundle: Bundle) -> bool:
        raise KeyError("judge")

    follower.judge = broken
    (policies / "a.yaml").write_bytes(b"1")
    assert codes(follower.until_refused()) == ["RC509"]
    follower.until_content(POLICY)
    follower.judge = lambda _: True
    (policies / "a.yaml").write_bytes(b"2")
    follower.until_content(b"2")


def test_a_push_is_seen_and_a_bad_one_keeps_the_last_good_revision(tmp_path: Path, follow: Follow) -> None:
    repository = Repository(tmp_path / "policies.git")
    first = repository.commit({"policies/a.yaml": b"1"})
    follower = follow(polled(repository.folder))
    follower.until(lambda source: source.latest().revision == first)
    tree = repository.work_tree(tmp_path / "tree")
    for content in (b"bad", b"2"):
        (tree / "policies" / "a.yaml").write_bytes(content)
        repository.git("commit", "--quiet", "--all", "--message", "edited", cwd=tree)
        repository.git("push", "--quiet", "origin", "main", cwd=tree)
        if content == b"bad":
            refused = follower.until_refused()
            assert follower.source.latest().revision == first
            assert refused.revision == repository.git("rev-parse", "main")
    follower.until_content(b"2")
    assert follower.source.last_refused is None


def test_a_remote_that_fails_keeps_the_last_good_revision(
    tmp_path: Path, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_first(monkeypatch, tmp_path / "bin", "ssh", SSH)
    repository = Repository(tmp_path / "policies.git")
    repository.commit({"policies/a.yaml": b"1"})
    follower = follow(polled(f"git@example.com:{repository.folder}", Access(tmp_path / "cache")))
    follower.until_content(b"1")
    repository.folder.rename(tmp_path / "aside")
    assert codes(follower.until_refused()) == ["RC515"]
    follower.until_content(b"1")
    (tmp_path / "aside").rename(repository.folder)
    repository.commit({"policies/a.yaml": b"2"})
    follower.until_content(b"2")


def test_stopping_calls_off_a_fetch_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "called")
    put_first(monkeypatch, tmp_path / "bin", "ssh", f"#!/bin/sh\necho >{tmp_path}/called\nexec sleep 60\n")
    source = WatchedSource(polled("git@example.com:x", Access(tmp_path / "cache")), lambda _: True, lambda: None)
    source.start()
    (tmp_path / "called").read_text()
    source.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "policies"]
    assert codes(source.latest()) == ["RC508"]


def test_the_pace_is_spread_by_chance() -> None:
    pace = PolledRepository(GitPlace("x"), SourceBounds(), Access(), 60.0, random.Random(7))
    waits = [pace.next_seconds() for _ in range(100)]
    assert all(60 <= seconds <= 66 for seconds in waits)
    assert len(set(waits)) == 100
