"""What a control group uses, from the files of cgroup v2."""

from pathlib import Path

import pytest

from reconciler.agent.sizing import Usage
from reconciler.agent.usage import CgroupUsage


def write(folder: Path, cpu: int, memory: int, caches: int) -> None:
    (folder / "cpu.stat").write_text(f"usage_usec {cpu}\nuser_usec 1\n")
    (folder / "memory.current").write_text(f"{memory}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {caches}\n")


def test_the_load_is_the_cpu_time_since_the_last_reading(tmp_path: Path) -> None:
    usage = CgroupUsage(tmp_path)
    write(tmp_path, 1_000_000, 500, 100)
    assert usage.read(10.0) == Usage(0, 400)
    write(tmp_path, 4_000_000, 50, 100)
    assert usage.read(12.0) == Usage(1_500, 0)
    assert usage.read(12.0) == Usage(0, 0)


def test_a_file_without_the_field_is_named(tmp_path: Path) -> None:
    write(tmp_path, 1, 1, 1)
    (tmp_path / "cpu.stat").write_text("")
    with pytest.raises(ValueError, match="no field usage_usec"):
        CgroupUsage(tmp_path).read(1.0)
