"""The history: what is kept is read again as it was, within its bounds, and a writer that was killed harms nothing."""

import json
from pathlib import Path

import msgspec
import pytest

from reconciler.loop.cycle import decide
from reconciler.model.cluster.unstructured import UnstructuredMetadata
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.inputs import Inputs
from reconciler.sources.history import History, HistoryRetention, NotKept, files, kept, kept_at
from tests.unit.plan.manifests.stage import inputs_of

HOUR_MS = 3_600_000
START = Instant(1_793_000_000_000)


def at(hour: float, count: int = 1) -> Inputs:
    return msgspec.structs.replace(inputs_of({"nodes": count}), now=Instant(START + int(hour * HOUR_MS)))


def hours(folder: Path, **span: Instant) -> list[float]:
    return [(each.inputs.now - START) / HOUR_MS for each in kept(folder, **span)]


def bytes_of(folder: Path) -> int:
    return sum(each.stat().st_size for each in files(folder))


def test_each_is_read_as_it_was_and_a_plan_of_it_is_the_same_plan(tmp_path: Path) -> None:
    history = History(tmp_path)
    first = inputs_of({"nodes": 3, "wish": {"spec": {"limits": {"cpu": "480"}}}})
    row = [first, at(1, 5), at(2, 5), at(3, 2)]
    for inputs in row:
        history.keep(inputs, decide(inputs).plan.digest)
    found = list(kept(tmp_path))
    assert [each.inputs.now for each in found] == [each.now for each in row]
    assert [decide(each.inputs).plan.digest for each in found] == [each.digest for each in found]
    assert [len(each.inputs.observed.nodes) for each in found] == [3, 5, 5, 2]


def test_what_did_not_change_is_not_kept_again(tmp_path: Path) -> None:
    history = History(tmp_path)
    large = at(0, 400)
    history.keep(large, "a")
    whole = bytes_of(tmp_path)
    for hour in range(1, 11):
        history.keep(msgspec.structs.replace(large, now=Instant(START + hour * HOUR_MS)), "a")
    assert bytes_of(tmp_path) - whole < whole
    assert len(list(kept(tmp_path))) == 11


def test_the_last_by_a_time_is_found(tmp_path: Path) -> None:
    history = History(tmp_path, HistoryRetention(file_records=2))
    for hour in range(5):
        history.keep(at(hour, hour + 1), str(hour))
    assert len(files(tmp_path)) == 3
    found = {hour: kept_at(tmp_path, at(hour).now).digest for hour in (0, 0.5, 1, 2.9, 3, 99)}
    assert found == {0: "0", 0.5: "0", 1: "1", 2.9: "2", 3: "3", 99: "4"}
    with pytest.raises(NotKept, match=f"the history begins at {timestamp(START)}"):
        kept_at(tmp_path, Instant(START - 1))
    assert hours(tmp_path, since=at(1).now, until=at(3).now) == [1, 2, 3]


def test_nothing_kept_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotKept, match="contains no history"):
        list(kept(tmp_path))
    with pytest.raises(NotKept, match="contains no history"):
        kept_at(tmp_path / "nowhere", START)


def test_what_is_older_than_its_days_goes(tmp_path: Path) -> None:
    history = History(tmp_path, HistoryRetention(file_ms=24 * HOUR_MS))
    for hour in range(0, 24 * 12, 6):
        history.keep(at(hour), "a")
    oldest = hours(tmp_path)[0]
    assert 24 * 12 - 6 - oldest <= 24 * 9
    assert 24 * 12 - 6 - oldest >= 24 * 7


def test_the_oldest_go_when_there_is_too_much(tmp_path: Path) -> None:
    bounds = HistoryRetention(file_records=1, total_bytes=20_000)
    history = History(tmp_path, bounds)
    for hour in range(60):
        history.keep(at(hour, 20), "a")
        assert bytes_of(tmp_path) <= bounds.total_bytes
    assert hours(tmp_path)[-1] == 59
    assert len(files(tmp_path)) > 1


@pytest.mark.parametrize("cut", [1, 5, 9, 30])
def test_a_writer_that_was_killed_loses_its_last_record_alone(tmp_path: Path, cut: int) -> None:
    history = History(tmp_path)
    for hour in range(3):
        history.keep(at(hour, hour + 1), "a")
    (file,) = files(tmp_path)
    file.write_bytes(file.read_bytes()[:-cut])
    another = History(tmp_path)
    another.keep(at(5), "b")
    assert hours(tmp_path) == [0, 1, 5]


def test_what_was_harmed_is_not_believed(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.keep(at(0), "a")
    history.keep(at(1, 3), "b")
    (file,) = files(tmp_path)
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    assert hours(tmp_path) == [0]


def test_after_a_failure_the_next_is_kept_whole(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    folder.write_text("in the way")
    history = History(folder)
    with pytest.raises(OSError, match="exist"):
        history.keep(at(0), "a")
    folder.unlink()
    history.keep(at(1), "b")
    assert [each.digest for each in kept(folder)] == ["b"]


def test_what_may_be_secret_is_not_kept(tmp_path: Path) -> None:
    inputs = at(0)
    (pool,) = inputs.observed.node_pools
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"password": "hunter2"})}
    metadata: UnstructuredMetadata = msgspec.structs.replace(pool.metadata, annotations=annotations)
    spoilt = msgspec.structs.replace(pool, metadata=metadata)
    observed = msgspec.structs.replace(inputs.observed, node_pools=(spoilt,))
    History(tmp_path).keep(msgspec.structs.replace(inputs, observed=observed), "a")
    (record,) = kept(tmp_path)
    assert "hunter2" not in str(record)
