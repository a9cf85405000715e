"""Files that a command is given: regular ones and standard input, up to a limit, and never a wait without end."""

import os
from pathlib import Path

import pytest

from reconciler.cli.main import main
from reconciler.sources.history import records
from reconciler.sources.input_file import STDIN, UnfitFile, read_file


def test_a_file_is_read_whole_up_to_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x" * 1000)
    assert read_file(file, 1000) == b"x" * 1000
    with pytest.raises(UnfitFile, match="larger than") as raised:
        read_file(file, 999)
    assert raised.value.remedy


def test_a_file_without_a_size_is_bounded_too() -> None:
    assert read_file(Path("/proc/self/status"), 1 << 20).startswith(b"Name:")
    with pytest.raises(UnfitFile, match="larger than"):
        read_file(Path("/proc/self/status"), 10)


@pytest.mark.parametrize("which", ["fifo", "/dev/zero", "/dev/null", ".", "socket"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, which: str) -> None:
    path = Path(which)
    if which == "fifo":
        path = tmp_path / "fifo"
        os.mkfifo(path)
    if which == "socket":
        os.mknod(path := tmp_path / "s", 0o140600)
    with pytest.raises(OSError, match=r"only regular files|No such device") as raised:
        read_file(path, 1000)
    assert raised.value.filename


@pytest.mark.parametrize("name", sorted(STDIN))
def test_standard_input_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def piped(content: bytes) -> bytes:
        read, write = os.pipe()
        os.write(write, content)
        os.close(write)
        with os.fdopen(read) as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            return read_file(Path(name), 1000)

    assert piped(b"x" * 1000) == b"x" * 1000
    with pytest.raises(UnfitFile, match="larger than"):
        piped(b"x" * 1001)
    with Path("/dev/zero").open() as endless:
        monkeypatch.setattr("sys.stdin", endless)
        with pytest.raises(UnfitFile, match="it is a device"):
            read_file(Path(name), 1000)
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UnfitFile, match="it is closed"):
        read_file(Path(name), 1000)


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "--cluster", "{}"],
        ["explain", "node/a", "--cluster", "{}"],
        ["status", "--cluster", "{}"],
        ["dump", "--cluster", "{}"],
        ["import", "--cluster", "{}", "--to", "{}.d"],
        ["replay", "{}"],
        ["simulate", "{}"],
        ["apply", "{}", "--digest", f"sha256:{'0' * 64}"],
    ],
)
def test_no_command_waits_for_a_fifo(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert main([each.format(fifo) for each in arguments]) == 1
    told = capsys.readouterr().err
    assert "it is a FIFO; only regular files are read" in told
    assert "remedy: name a regular file" in told


def test_a_fifo_in_the_folder_of_a_history_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1-1.history")
    with pytest.raises(UnfitFile, match="not a regular file"):
        list(records(tmp_path / "1-1.history"))
