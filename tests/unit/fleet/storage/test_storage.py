"""Volumes and nominations in a what-if: what is booked is taken, what is taken off is free, and it all comes back."""

from typing import Any

import msgspec

from reconciler.fleet.filters import PREDICATES
from reconciler.fleet.filters.nominated import Nominated
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from tests.unit.fleet.storage.stage import LOCAL, NODES, observed_of, pod_of, take_off, where


def fits(fleet: Snapshot, pod: Pod) -> list[str]:
    return [name for name, why in where(fleet, pod, PREDICATES).items() if not why]


def asked(claims: list[str], **more: Any) -> Pod:
    return pod_of({"pod": {"name": f"asks-{'-'.join(claims)}", "claims": claims, **more}})


def book(fleet: Snapshot, pod: Pod, node: str) -> None:
    fleet.add(fleet.classes.of(pod), fleet.rows.row_of[node])


def test_a_volume_that_one_pod_gets_is_gone_for_the_next() -> None:
    volumes = {"v": {"class": "local", "hosts": ["a1"]}, "w": {"class": "local", "hosts": ["b1"]}}
    claims = {"one": {"class": "local"}, "two": {"class": "local"}}
    fleet = Snapshot(observed_of({**LOCAL, "volumes": volumes, "claims": claims}))
    assert fits(fleet, asked(["two"])) == ["a1", "b1"]
    with fleet.fork():
        book(fleet, asked(["one"]), "a1")
        assert fits(fleet, asked(["two"])) == ["b1"]
        with fleet.fork():
            take_off(fleet, "a1")
            assert fits(fleet, asked(["two"])) == ["a1", "b1"]
        assert fits(fleet, asked(["two"])) == ["b1"]
    assert fits(fleet, asked(["two"])) == ["a1", "b1"]


def test_a_pod_that_shares_an_unbound_claim_follows_the_first() -> None:
    volumes = {"v": {"class": "local", "hosts": ["a1", "a2"]}}
    claims = {"made": {"class": "disks"}, "found": {"class": "local"}}
    fleet = Snapshot(observed_of({**LOCAL, "volumes": volumes, "claims": claims}))
    with fleet.fork():
        book(fleet, asked(["made", "found"]), "a1")
        assert fits(fleet, asked(["made"])) == ["a1"], "a volume is made where its first pod is"
        assert fits(fleet, asked(["found"])) == ["a1", "a2"], "a volume that was there is reached from elsewhere too"
    assert fits(fleet, asked(["made"])) == ["a1", "a2", "b1"]


def test_a_volume_that_was_chosen_is_where_its_labels_say_for_the_next_pod() -> None:
    volumes = {"v": {"class": "local", "labels": {"topology.kubernetes.io/zone": "a"}}}
    fleet = Snapshot(observed_of({**LOCAL, "volumes": volumes, "claims": {"found": {"class": "local"}}}))
    assert fits(fleet, asked(["found"])) == ["a1", "a2", "b1"], "the scheduler does not look at labels when it chooses"
    with fleet.fork():
        book(fleet, asked(["found"]), "a1")
        assert fits(fleet, asked(["found"])) == ["a1", "a2"]


def test_what_is_taken_off_and_put_back_gets_the_same_volume_again() -> None:
    volumes = {each: {"class": "local", "hosts": ["a1"], "size": size} for each, size in (("v", "1Gi"), ("w", "2Gi"))}
    claims = {"one": {"class": "local"}, "two": {"class": "local"}, "three": {"class": "local", "size": "2Gi"}}
    fleet = Snapshot(observed_of({**LOCAL, "volumes": volumes, "claims": claims}))
    one, two = (fleet.classes.of(asked([each])) for each in ("one", "two"))
    row = fleet.rows.row_of["a1"]
    assert fits(fleet, asked(["three"])) == ["a1"]
    with fleet.fork():
        fleet.add(one, row)
        fleet.add(two, row)
        fleet.remove(one, row)
        before = fleet.fingerprint()
        with fleet.fork():
            fleet.remove(two, row)
            assert fits(fleet, asked(["three"])) == ["a1"]
        assert fleet.fingerprint() == before
        assert fits(fleet, asked(["three"])) == []


def test_a_pod_seen_on_a_node_promises_nothing() -> None:
    """Whoever put it there did not wait for its volume: for the next one the scheduler chooses as if it were away."""
    case = {**LOCAL, "claims": {"made": {"class": "disks"}}, "pods": [{"at": "a1", "claims": ["made"]}]}
    fleet = Snapshot(observed_of(case))
    assert fits(fleet, asked(["made"])) == ["a1", "a2", "b1"]
    with fleet.fork():
        take_off(fleet, "a1")
        book(fleet, asked(["made"]), "b1")
        assert fits(fleet, asked(["made"])) == ["b1"]
    assert fits(fleet, asked(["made"])) == ["a1", "a2", "b1"]


def test_what_was_booked_before_anyone_asked_is_promised_too() -> None:
    fleet = Snapshot(observed_of({**LOCAL, "claims": {"made": {"class": "disks"}}}))
    with fleet.fork():
        book(fleet, asked(["made"]), "a2")
        assert fits(fleet, asked(["made"])) == ["a2"]
    assert fits(fleet, asked(["made"])) == ["a1", "a2", "b1"]


def test_a_claim_for_one_pod_alone_is_free_once_its_pod_is_taken_off() -> None:
    case = {
        "claims": {"data": {"volume": "v", "modes": ["ReadWriteOncePod"]}},
        "volumes": {"v": {"zones": ["a"]}},
        "pods": [{"at": "a1", "claims": ["data"]}],
    }
    fleet = Snapshot(observed_of(case))
    assert fits(fleet, asked(["data"])) == []
    with fleet.fork():
        take_off(fleet, "a1")
        assert fits(fleet, asked(["data"])) == ["a1", "a2"]
        book(fleet, asked(["data"]), "a2")
        assert fits(fleet, asked(["data"])) == []
    assert fits(fleet, asked(["data"])) == []


def test_volumes_leave_a_node_with_their_pod_and_others_stay_attached() -> None:
    case = {
        "claims": {each: {"volume": each} for each in ("one", "two")},
        "volumes": {each: {} for each in ("one", "two", "left-behind")},
        "limits": {"a1": 2, "a2": 0, "b1": 0},
        "attached": {"a1": ["one", "left-behind"]},
        "pods": [{"at": "a1", "claims": ["one"]}],
    }
    fleet = Snapshot(observed_of(case))
    assert fits(fleet, asked(["two"])) == []
    with fleet.fork():
        take_off(fleet, "a1")
        assert fits(fleet, asked(["two"])) == ["a1"]
        book(fleet, asked(["two"]), "a1")
        assert fits(fleet, asked(["one"])) == []
    assert fits(fleet, asked(["two"])) == []


def test_what_was_attached_before_its_pod_came_counts_once() -> None:
    case = {
        "claims": {each: {"volume": each} for each in ("one", "two")},
        "volumes": {"one": {}, "two": {}},
        "limits": {"a1": 2, "a2": 0, "b1": 0},
        "attached": {"a1": ["one"]},
    }
    fleet = Snapshot(observed_of(case))
    with fleet.fork():
        book(fleet, asked(["one"]), "a1")
        assert fits(fleet, asked(["two"])) == ["a1"]


def test_what_stays_attached_after_its_pod_has_gone_counts() -> None:
    case = {
        "claims": {each: {"volume": each} for each in ("one", "two")},
        "volumes": {"one": {}, "two": {}},
        "limits": {"a1": 1, "a2": 0, "b1": 0},
        "attached": {"a1": ["one"]},
        "pods": [{"at": "a1", "claims": ["one"]}],
    }
    observed = observed_of(case)
    fleet = Snapshot(observed)
    assert fits(fleet, asked(["two"])) == []
    fleet.advance(msgspec.structs.replace(observed, pods=()))
    assert fits(fleet, asked(["two"])) == []
    fleet.advance(msgspec.structs.replace(observed, pods=(), attachments=()))
    assert fits(fleet, asked(["two"])) == ["a1"]


def test_a_node_that_is_taken_away_and_given_back_bears_what_it_bore() -> None:
    case = {
        "claims": {"data": {"volume": "v"}},
        "volumes": {"v": {}, "w": {}},
        "limits": {"a1": 1, "a2": 2},
        "attached": {"a1": ["w"], "a2": ["w"]},
    }
    fleet = Snapshot(observed_of(case))
    assert fits(fleet, asked(["data"])) == ["a2", "b1"]
    before = fleet.fingerprint()
    with fleet.fork():
        for name in NODES:
            fleet.take_away(fleet.rows.row_of[name])
        assert fits(fleet, asked(["data"])) == []
        fleet.bring(msgspec.convert({"metadata": {"name": "new"}, "status": {"allocatable": {"pods": "1"}}}, Node))
        assert fits(fleet, asked(["data"])) == ["new"]
    assert fleet.fingerprint() == before
    assert fits(fleet, asked(["data"])) == ["a2", "b1"]


def test_a_nomination_that_is_used_up_is_in_nobodys_way_until_it_is_taken_back() -> None:
    case = {"pods": [{"name": "first", "nominated": "a1", "cpu": 6}]}
    observed = observed_of(case)
    fleet = Snapshot(observed)
    (first,) = observed.pods
    assert fits(fleet, asked([], cpu=4)) == ["a2", "b1"]
    with fleet.fork():
        book(fleet, first, "b1")
        fleet.part(Nominated).use_up(first, fleet)
        assert fits(fleet, asked([], cpu=4)) == ["a1", "a2"]
    assert fits(fleet, asked([], cpu=4)) == ["a2", "b1"]


def test_what_was_seen_anew_counts() -> None:
    before = {"claims": {"data": {"volume": "v"}}, "volumes": {"v": {"zones": ["a"]}}, "limits": {"a1": 1}}
    after = {**before, "volumes": {"v": {"zones": ["b"]}}}
    full = {**before, "limits": {"a1": 0}}
    fleet = Snapshot(observed_of(before))
    for case, expected in ((before, ["a1", "a2"]), (after, ["b1"]), (full, ["a2"]), (before, ["a1", "a2"])):
        fleet.advance(observed_of(case))
        assert fits(fleet, asked(["data"])) == expected
