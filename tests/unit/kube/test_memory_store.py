"""The memory in ConfigMaps: what is saved is loaded, at any size, and at any instant it is the old or the new."""

import random
from base64 import b64decode
from contextlib import suppress
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kube.memory_store import HEAD, PART_BYTES, ConfigMapMemory
from reconciler.model.instant import Instant
from reconciler.model.plan.guard_verdict import DisruptionRecord
from reconciler.model.plan.memory import Memory
from reconciler.ports import Stale, Unavailable, VersionedMemory
from tests.unit.kube.configmap_server import ConfigMaps, Killed, broken_connection

SMALL = 64  # bytes a part


def memory(marks: int, seed: int = 0) -> Memory:
    """Names that can't be compressed."""
    chance = random.Random(seed)
    return Memory(
        tuple(DisruptionRecord(Instant(each), "Node", f"{chance.getrandbits(128):032x}") for each in range(marks))
    )


def store(server: ConfigMaps, part_bytes: int = SMALL) -> ConfigMapMemory:
    return ConfigMapMemory(server, "gpu-system", part_bytes)


def parts(server: ConfigMaps) -> list[str]:
    return sorted(name for name in server.objects if name != HEAD)


def test_where_nothing_was_saved_the_memory_is_empty() -> None:
    assert store(ConfigMaps()).load() == VersionedMemory(Memory())


@given(st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_what_is_saved_is_what_is_loaded_and_nothing_else_is_left(sizes: list[int]) -> None:
    server = ConfigMaps()
    kept = store(server)
    stored = kept.load()
    for number, size in enumerate(sizes):
        stored = kept.save(memory(size, number), stored)
        assert kept.load() == stored
        assert stored.memory == memory(size, number)
        assert len(parts(server)) == -(-_bytes(server) // SMALL) - 1


def _bytes(server: ConfigMaps) -> int:
    """Compressed, from what the parts hold."""
    return sum(len(b64decode(each["binaryData"]["part"])) for each in server.objects.values())


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_at_the_limit_of_a_part_another_begins(over: int) -> None:
    server = ConfigMaps()
    whole = store(server, 1 << 30)
    whole.save(memory(20), whole.load())
    size = _bytes(server)
    server = ConfigMaps()
    kept = store(server, size - over)
    assert kept.save(memory(20), kept.load()) == kept.load()
    assert len(parts(server)) == (1 if over > 0 else 0)


def test_a_memory_of_some_megabytes_is_taken_by_the_api_server() -> None:
    server = ConfigMaps()
    kept = store(server, PART_BYTES)
    stored = kept.save(memory(60_000), kept.load())
    assert kept.load() == stored
    assert len(parts(server)) >= 1


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12), st.booleans())
def test_whoever_is_killed_at_a_write_leaves_the_old_or_the_new(
    old: int, new: int, writes: int, takes_effect: bool
) -> None:
    server = ConfigMaps()
    kept = store(server)
    before = kept.save(memory(old, 1), kept.load())
    server.writes_left, server.takes_effect = writes, takes_effect
    with suppress(Killed):
        kept.save(memory(new, 2), before)
    server.writes_left = None
    found = store(server).load()
    assert found.memory in (memory(old, 1), memory(new, 2))
    # Whoever comes next goes on from there, and leaves nothing behind of what was begun.
    again = store(server).save(memory(3, 3), found)
    assert store(server).load() == again
    assert len(parts(server)) == -(-_bytes(server) // SMALL) - 1


def test_a_write_whose_answer_is_lost_is_told_as_unknown_and_found_again() -> None:
    server = ConfigMaps()
    kept = store(server, 1 << 20)
    before = kept.save(memory(1, 1), kept.load())
    server.writes_left, server.takes_effect, server.then = 0, True, broken_connection()
    with pytest.raises(Unavailable, match="cannot write the memory"):
        kept.save(memory(2, 2), before)
    server.writes_left = None
    assert kept.load().memory == memory(2, 2)
    with pytest.raises(Stale):
        kept.save(memory(2, 2), before)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_of_two_writers_one_is_stale_and_the_other_s_memory_is_whole(first: int, second: int, at: int) -> None:
    """The second saves all of its own in the middle of the first, its sweeping included."""
    server = ConfigMaps()
    before = store(server).save(memory(5, 9), store(server).load())
    winners: list[Memory] = []

    def save(new: Memory) -> None:
        try:
            winners.append(store(server).save(new, before).memory)
        except Stale:
            return

    server.meanwhile(lambda sent, _: sent == at, lambda: save(memory(second, 2)))
    save(memory(first, 1))
    server.interfere()  # where there were not so many writes
    assert [store(server).load().memory] == winners


def test_a_sweep_that_comes_late_takes_nothing_from_the_next_memory() -> None:
    """The same text as one that was swept, by another writer, while the first has yet to sweep."""
    server = ConfigMaps()
    kept = store(server)
    old = kept.save(memory(8, 1), kept.load())

    def go_back() -> None:
        between = store(server).load()
        assert between.memory == memory(9, 2)
        store(server).save(memory(8, 1), between)

    server.meanwhile(lambda _, request: request.method == "DELETE", go_back)
    kept.save(memory(9, 2), old)
    assert store(server).load().memory == memory(8, 1)


def test_a_sweep_that_comes_late_leaves_the_parts_of_a_memory_that_is_being_written() -> None:
    server = ConfigMaps()
    old = store(server).save(memory(8, 1), store(server).load())
    is_at_its_sweep, may_sweep = Event(), Event()

    def pause() -> None:
        is_at_its_sweep.set()
        assert may_sweep.wait(10)

    server.before_list = pause
    late = Thread(target=lambda: store(server).save(memory(9, 2), old))
    late.start()
    assert is_at_its_sweep.wait(10)
    server.before_list = lambda: None

    def sweep() -> None:
        may_sweep.set()
        late.join()

    server.meanwhile(lambda _, request: request.method == "PUT", sweep)  # all parts of the next memory stand
    saved = store(server).save(memory(10, 3), store(server).load())
    assert store(server).load() == saved


def test_a_head_that_was_deleted_is_an_empty_memory_and_stales_whoever_knew_it() -> None:
    server = ConfigMaps()
    kept = store(server)
    stored = kept.save(memory(1), kept.load())
    del server.objects[HEAD]
    with pytest.raises(Stale):
        kept.save(memory(2), stored)
    assert kept.load() == VersionedMemory(Memory())


@pytest.mark.parametrize("harm", ["part", "digest", "format"])
def test_a_memory_that_was_harmed_is_never_taken_for_an_empty_one(harm: str) -> None:
    server = ConfigMaps()
    kept = store(server)
    kept.save(memory(9), kept.load())
    head = server.objects[HEAD]
    if harm == "part":
        del server.objects[parts(server)[0]]
    elif harm == "digest":
        head["data"]["head"] = head["data"]["head"].replace('"digest":"', '"digest":"0')
    else:
        head["data"]["head"] = "{}"
    with pytest.raises(Unavailable, match="delete the ConfigMap reconciler-memory"):
        kept.load()
