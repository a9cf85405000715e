"""What a killed writer leaves behind is taken away at the next write; what a living one is at is left alone."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reconciler.cli.files import PRIVATE, SUFFIX, Staged, replace_files, write_all
from reconciler.model.bundle import Text

HALF_WAY = """
import sys, time
from pathlib import Path
from reconciler.cli.files import Staged
staged = Staged(Path(sys.argv[1]), b"half", 0o600)
print("staged", flush=True)
time.sleep(60)
"""


def unfinished(folder: Path) -> list[Path]:
    return sorted(folder.glob(f".*{SUFFIX}"))


def started(target: Path) -> "subprocess.Popen[bytes]":
    writer = subprocess.Popen([sys.executable, "-c", HALF_WAY, str(target)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"staged\n"
    return writer


@pytest.mark.parametrize("by", ["replace_files", "write_all"])
def test_after_a_sigkill_the_next_write_leaves_nothing_unfinished(tmp_path: Path, by: str) -> None:
    with started(tmp_path / "plan.json") as writer:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert len(unfinished(tmp_path)) == 1
    if by == "replace_files":
        replace_files({tmp_path / "other.json": b"whole"})
    else:
        write_all(tmp_path, [Text("other.json", b"whole")])
    assert (tmp_path / "other.json").read_bytes() == b"whole"
    assert unfinished(tmp_path) == []
    assert not (tmp_path / "plan.json").exists()


def test_what_another_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    with started(tmp_path / "plan.json") as writer:
        try:
            replace_files({tmp_path / "other.json": b"whole"})
            assert len(unfinished(tmp_path)) == 1
        finally:
            writer.kill()


def test_files_and_links_that_only_look_like_it_stay_or_go_by_themselves(tmp_path: Path) -> None:
    kept = tmp_path / "precious"
    kept.write_bytes(b"x")
    (tmp_path / f".link{SUFFIX}").symlink_to(kept)
    (tmp_path / f"plain{SUFFIX}").write_bytes(b"x")
    os.mkfifo(tmp_path / f".fifo{SUFFIX}")
    replace_files({tmp_path / "a": b"a"})
    assert kept.read_bytes() == b"x"
    assert {each.name for each in tmp_path.iterdir()} == {
        "precious",
        "a",
        f".link{SUFFIX}",
        f"plain{SUFFIX}",
        f".fifo{SUFFIX}",
    }


def test_what_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    staged = Staged(tmp_path / "a", b"a", 0o600)
    staged.give_up()
    staged.give_up()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("before", [None, 0o644, 0o666])
def test_a_private_file_is_for_its_owner_alone_whatever_stood_there(
    tmp_path: Path, umask: int, before: int | None
) -> None:
    file = tmp_path / "plan.json"
    if before is not None:
        file.write_bytes(b"old")
        file.chmod(before)
    old = os.umask(umask)
    try:
        replace_files({file: b"new"}, mode=PRIVATE)
    finally:
        os.umask(old)
    assert (file.stat().st_mode & 0o777, file.read_bytes()) == (0o600, b"new")


def test_writers_of_one_folder_at_the_same_time_all_finish(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from reconciler.cli.files import replace_files\n"
        "for n in range(60): replace_files({Path(sys.argv[1]) / sys.argv[2]: b'x' * 1000})\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path), name], stderr=subprocess.PIPE)
        for name in ("a", "b", "a")
    ]
    deadline = time.monotonic() + 60
    for writer in writers:
        _, told = writer.communicate(timeout=deadline - time.monotonic())
        assert (writer.returncode, told) == (0, b"")
    assert {each.name for each in tmp_path.iterdir()} == {"a", "b"}
