"""A thousand watch events a second for a minute: nothing is lost, and what is seen is what there is.

Those come from a server of our own, since the lab's API server, its etcd and their writers fill both cores before they
make as many; what they do make is measured beside it. The objects are as large as real ones, and each event is sent by
itself.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.kube.api_server import Stream
from reconciler.kube.client import Client
from reconciler.kube.observe import ObservedScope, Observer, observe_once
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from tests.lab import identities
from tests.lab.lab import Lab
from tests.lab.places import REPOSITORY
from tests.results.record import Recorder, Result
from tests.stages.observing import seen_by
from tests.unit.lab.proxy_stage import write_papers

RATE, SECONDS = 1_000, 60
LEASES, LIVE_SECONDS = 200, 20
SETTLE_SECONDS = 0.1  # as the loop does between two looks
TOLD = ObservedScope(kinds=tuple(each for each in RESOURCE_KINDS if each.field in {"nodes", "pods", "budgets"}))
LIVE = ObservedScope(kinds=tuple(each for each in RESOURCE_KINDS if each.field == "leases"))


class Counting(Client):
    """Counts the events of all watches."""

    events = 0

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str], silence_seconds: float) -> Iterator[Stream]:
        with super().stream(path, query, silence_seconds) as stream:
            yield Stream(stream.answer, self._counted(stream.lines))

    def apart(self) -> Client:
        return self

    def _counted(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            self.events += not line.startswith(b'{"type":"BOOKMARK"')
            yield line


@dataclass(frozen=True)
class Minute:
    """What an observer did while something was going on."""

    made: str  # what the other process said at its end
    figures: dict[str, float | int | str]
    differing: int


def observed_while(client: Counting, scope: ObservedScope, process: "subprocess.Popen[str]") -> Minute:
    """Looks at each change until the process has said a line."""
    changed = threading.Event()
    observer = Observer(client, scope, on_change=changed.set)
    observer.start()
    while not observer.is_synced():
        assert changed.wait(30)
        changed.clear()
    assert process.stdin
    assert process.stdout
    said: list[str] = []
    listening = threading.Thread(target=lambda out=process.stdout: said.append(out.readline()))
    began, spent, looks, longest = time.monotonic(), time.process_time(), 0, 0.0
    process.stdin.write("begin\n")
    process.stdin.flush()
    listening.start()
    while listening.is_alive() or changed.is_set():
        if changed.wait(0.5):
            changed.clear()
            looked = time.perf_counter()
            observer.observe()
            looks, longest = looks + 1, max(longest, time.perf_counter() - looked)
            time.sleep(SETTLE_SECONDS)
    seconds, spent = time.monotonic() - began, time.process_time() - spent
    listed = seen_by(observe_once(client, scope.namespace, scope.kinds))
    seen = seen_by(observer.observe())
    observer.stop()
    figures: dict[str, float | int | str] = {
        "events_a_second": round(client.events / seconds),
        "cpu_percent_of_a_core": round(100 * spent / seconds),
        "looks": looks,
        "longest_look_ms": round(longest * 1000, 1),
    }
    return Minute(said[0], figures, sum(listed[field] != seen[field] for field in listed))


@contextmanager
def running(module: str, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.bench
def test_a_thousand_events_a_second(tmp_path: Path, recorder: Recorder) -> None:
    authority = write_papers(tmp_path).authority
    with running("tests.benchmarks.telling_server", tmp_path, RATE, SECONDS) as process:
        assert process.stdout
        client = Counting.at(f"https://127.0.0.1:{process.stdout.readline().strip()}", authority, "token")
        minute = observed_while(client, TOLD, process)
    told = json.loads(minute.made)
    lost = told["told"] - client.events
    figures = minute.figures | {"fields_that_differ": minute.differing, "events_came_from": "a server of our own"}
    what = "watch events of 5,000 pods, 500 nodes and their budgets, and how many of them were lost"
    recorder.write(Result("bench-watching", what, client.events, lost, figures=figures))
    assert (lost, minute.differing) == (0, 0)
    assert told["late"] < 1, "the server could not keep the pace"


@pytest.mark.bench
def test_as_many_events_as_the_api_server_makes(cluster: Lab, recorder: Recorder) -> None:
    names = [f"bench-{number}" for number in range(LEASES)]
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    cluster.load({**lease, "metadata": {"name": each, "namespace": identities.NAMESPACE}} for each in names)
    admin, token = cluster.admin, identities.reconciler(cluster.admin).credential.token
    assert admin.credential.pair
    client = Counting.at(admin.url, admin.authority, token)
    shown = (admin.url, admin.authority, admin.credential.pair.certificate, admin.credential.pair.key)
    try:
        with running("tests.benchmarks.lease_writer", *shown, LIVE_SECONDS, *names) as process:
            minute = observed_while(client, LIVE, process)
    finally:
        for each in names:
            admin.delete("leases", each, identities.NAMESPACE)
    lost = int(minute.made) - client.events
    figures = minute.figures | {"fields_that_differ": minute.differing, "events_came_from": "the lab's API server"}
    what = "watch events of 200 leases, changed as fast as the lab can, and how many of them were lost"
    recorder.write(Result("bench-watching-live", what, client.events, lost, figures=figures))
    assert (lost, minute.differing) == (0, 0)
