"""Standard streams that are closed, full, or left by their reader; and Python without docstrings and asserts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slow import long

REPOSITORY = Path(__file__).parents[2]
CLUSTER = ["--cluster", "examples/production/cluster.json", "--complete"]
PLAN = ["plan", *CLUSTER]


def shell(command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """`command` is of a shell, in which "$@" is reconciler with its arguments."""
    return subprocess.run(
        ["bash", "-c", command, "-", sys.executable, "-m", "reconciler", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


def errors(told: str) -> list[str]:
    assert "Traceback" not in told
    assert "Exception ignored" not in told
    return [each for each in told.splitlines() if not each.startswith("note: ")]


@pytest.mark.parametrize(
    "arguments", [PLAN, long(["dump", *CLUSTER]), ["--help"], long(["validate", "--help"]), long(["--version"])]
)
def test_a_full_disk_ends_with_1_and_one_line(arguments: list[str]) -> None:
    found = shell('"$@" > /dev/full', *arguments)
    assert found.returncode == 1
    (told,) = errors(found.stderr)
    assert told == "Error: standard output could not be written: No space left on device"


def test_a_full_disk_under_a_file_ends_with_1_and_one_line() -> None:
    found = shell('"$@"', *PLAN, "-o", "json=/dev/full")
    assert found.returncode == 1
    assert errors(found.stderr) == ["Error: nothing was written: /dev/full: No space left on device"]


@pytest.mark.parametrize("arguments", [PLAN, long(["dump", *CLUSTER]), long(["status", *CLUSTER])])
def test_a_closed_output_ends_with_1_and_one_line(arguments: list[str]) -> None:
    found = shell('"$@" >&-', *arguments)
    assert found.returncode == 1
    (told,) = errors(found.stderr)
    assert told == "Error: standard output could not be written: Bad file descriptor"


def test_a_file_is_written_whole_where_streams_are_closed(tmp_path: Path) -> None:
    found = shell('"$@" <&- >&- 2>&-', *PLAN, "-o", f"json={tmp_path / 'a.json'}", "--out", str(tmp_path / "plan.json"))
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
    assert (tmp_path / "a.json").read_bytes().startswith(b"{")
    assert (tmp_path / "plan.json").read_bytes().endswith(b"}\n")


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full"])
def test_where_nothing_can_be_told_the_exit_code_is_the_same(redirected: str) -> None:
    assert shell(f'"$@" {redirected}', *PLAN).returncode == 0
    assert shell(f'"$@" {redirected}', "explain").returncode == 64
    assert shell(f'"$@" {redirected}', "apply", "--digest", "x").returncode == 64


def test_a_reader_that_leaves_is_no_fault_to_be_told() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        found = subprocess.run(
            [sys.executable, "-m", "reconciler", *PLAN],
            cwd=REPOSITORY, stdout=write, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    finally:
        os.close(write)
    assert errors(found.stderr) == []
    assert found.returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", "policies"],
        ["schema", "GpuPool", "--crd"],
        long(["render", "policies", "-e", "prod"]),
        long(["rbac", "policies"]),
        PLAN,
        long(["status", *CLUSTER]),
        long(["explain", "node/train-00", *CLUSTER]),
    ],
)
def test_without_docstrings_and_asserts_commands_do_the_same(arguments: list[str]) -> None:
    def run(*options: str) -> tuple[int, str]:
        found = subprocess.run(
            [sys.executable, *options, "-m", "reconciler", *arguments],
            cwd=REPOSITORY, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert errors(found.stderr) == errors(found.stderr)
        return found.returncode, "" if "schema" in arguments else found.stdout  # descriptions are docstrings

    assert run("-OO") == run()


def test_without_docstrings_commands_still_say_what_they_are_for() -> None:
    found = subprocess.run(
        [sys.executable, "-OO", "-m", "reconciler", "plan", "--help"], capture_output=True, text=True, check=True
    )
    assert "Show what would happen to the cluster" in found.stdout


@pytest.mark.parametrize("arguments", [["--cluster", "{}"], ["--policies", "{}"]])
@pytest.mark.parametrize("kind", ["fifo", "zero"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str, arguments: list[str]) -> None:
    path = Path("/dev/zero")
    if kind == "fifo":
        path = tmp_path / "fifo.yaml"
        os.mkfifo(path)
    cluster = [] if "--cluster" in arguments else CLUSTER
    found = subprocess.run(
        [sys.executable, "-m", "reconciler", "plan", *cluster, *(each.format(path) for each in arguments)],
        cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert found.returncode in {1, 3}
    assert "remedy: name a regular file" in found.stderr or "FIFO" in found.stderr or "device" in found.stderr
