"""What the processes of a control group use, from the files of cgroup v2."""

from pathlib import Path

from reconciler.agent.sizing import Usage

ROOT = Path("/sys/fs/cgroup")


class CgroupUsage:
    """Owner of the last reading, since cpu time is counted from the start."""

    def __init__(self, folder: Path = ROOT) -> None:
        self._folder = folder
        self._last: tuple[float, int] | None = None  # when, and microseconds of cpu

    def read(self, now: float) -> Usage:
        """The use since the last reading. Raises OSError and ValueError."""
        spent = _field(self._folder / "cpu.stat", "usage_usec")
        caches = _field(self._folder / "memory.stat", "inactive_file")
        memory = max(0, int((self._folder / "memory.current").read_text()) - caches)
        before, self._last = self._last, (now, spent)
        if before is None or now <= before[0]:
            return Usage(0, memory)
        return Usage(max(0, int((spent - before[1]) / (now - before[0]) / 1_000)), memory)


def _field(file: Path, name: str) -> int:
    for line in file.read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    raise ValueError(f"{file} has no field {name}")
