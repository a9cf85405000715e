"""Leader election by a Lease in reconciler's namespace. A Leader owns its thread and its terms.

A thread, since the Lease must be renewed while everything else waits. The decisions are in protocol/leadership.py.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from reconciler.kube.api_server import ApiRequest, ApiResponse, Unreachable, Writer, below, folder_in
from reconciler.kube.watch.changes import said, wall_clock
from reconciler.model import names
from reconciler.model.cluster.metadata import Lease
from reconciler.model.instant import Instant, timestamp
from reconciler.protocol import leadership
from reconciler.protocol.leadership import CandidateState, Claim, LeaseRecord, LeaseTiming, Monotonic

# --- Fence: until when this process may write, for one term of leadership.

MonotonicClock = Callable[[], Monotonic]


def monotonic_ms() -> Monotonic:
    """A clock that continues while the process is stopped and, on most systems, while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return Monotonic(time.clock_gettime_ns(clock) // 1_000_000)


class LeaderFence:
    """Thread-safe. Once the fence has ended, later renewals have no effect."""

    def __init__(self, until: Monotonic, clock: MonotonicClock = monotonic_ms) -> None:
        self._until = until
        self._clock = clock
        self._has_ended = False
        self._lock = threading.Lock()

    def holds(self) -> bool:
        with self._lock:
            self._has_ended |= self._clock() >= self._until
            return not self._has_ended

    def extend(self, until: Monotonic) -> bool:
        """Extends the term; returns whether it is still valid, since it may have expired before."""
        with self._lock:
            self._has_ended |= self._clock() >= self._until
            self._until = max(self._until, until)
            return not self._has_ended

    def end(self) -> None:
        """Ends the term: nothing more is sent."""
        with self._lock:
            self._has_ended = True


STOP_SECONDS = 2.0
LEADERLESS_AFTER_LEASES = 2  # after a leader dies, another one leads within one Lease duration
_LONGEST_NAME = 100  # characters shown of a holder's name


class Candidacy(msgspec.Struct, frozen=True):
    me: str  # unique to this process: a restarted process has another identity
    namespace: str = names.OWN_NAMESPACE
    name: str = names.LEADER_LEASE
    pace: LeaseTiming = LeaseTiming()

    @property
    def folder(self) -> str:
        return folder_in(self.namespace, "coordination.k8s.io", "leases")

    @property
    def path(self) -> str:
        return below(self.folder, self.name)


class Leader:
    """A candidate for leadership.

    `on_change` is called on the Leader's thread when leadership or the error changes. `seen_at` is called at each write
    of the Lease: the time of the leader's last snapshot, for users.
    """

    def __init__(
        self,
        server: Writer,
        candidacy: Candidacy,
        on_change: Callable[[], None] = lambda: None,
        seen_at: Callable[[], Instant | None] = lambda: None,
    ) -> None:
        self._server = server
        self._seen_at = seen_at
        self._candidacy, self.me = candidacy, candidacy.me
        self._on_change = on_change
        self._candidate_state = CandidateState(candidacy.me)
        self._term: LeaderFence | None = None
        self._renewals_of_others = 0
        self.trouble = ""  # why the last read or write of the Lease failed; empty if it succeeded
        self._led_at = monotonic_ms()  # when there was last known to be a leader
        self._told = (False, "")  # leadership and error at the last call of on_change
        self._moved = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leadership", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def term(self) -> LeaderFence | None:
        """The current term; None if another process leads, or none."""
        term = self._term
        return term if term is not None and term.holds() else None

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def holder(self) -> str:
        """The known leader; empty if there is none."""
        record = self._candidate_state.record
        return record.spec.holder_identity if record else ""

    @property
    def epoch(self) -> int:
        """How often the Lease has changed its holder: the number of the term while this process leads."""
        record = self._candidate_state.record
        return record.spec.lease_transitions if record else 0

    @property
    def why_leaderless(self) -> str:
        """That there is no leader, and for how long; empty while there is one, or was until a moment ago."""
        missing_ms, lease_ms = monotonic_ms() - self._led_at, self._candidacy.pace.lease_ms
        if missing_ms < LEADERLESS_AFTER_LEASES * lease_ms:
            return ""
        text = f"no leader for {missing_ms // 1_000} s"
        if self.trouble:
            return f"{text}: {self.trouble}"
        if not self.holder:
            return text
        lease = f"Lease/{self._candidacy.namespace}/{self._candidacy.name}"
        return f"{text}: {ascii(self.holder[:_LONGEST_NAME])[1:-1]} holds {lease} but does not renew it"

    def wait_for_term(self, timeout_seconds: float) -> LeaderFence | None:
        """Waits for leadership; gives up if another leader is active, on an error, or at the timeout."""
        with self._moved:
            self._moved.wait_for(lambda: self.term() or self._renewals_of_others or self.trouble, timeout_seconds)
        return self.term()

    def resign(self) -> None:
        """Ends the term: no more writes, no more renewals."""
        self._stop.set()
        if self._term is not None:
            self._term.end()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS)

    def release(self) -> None:
        """Releases the Lease, so that the next leader starts immediately. Call after all responses have arrived."""
        self.resign()
        given_up = None if self._thread.is_alive() else leadership.release(self._candidate_state)
        if given_up is not None:
            try:
                self._write(given_up)
            except Unreachable as fault:
                self.trouble = str(fault)  # the Lease will expire

    def _run(self) -> None:
        while not self._stop.is_set():
            self.step()
            with self._moved:
                self._moved.notify_all()
            # A term may expire between two steps, for example while the process is stopped; report relative to the last
            # call.
            if (found := (self.term() is not None, self.trouble)) != self._told:
                self._told = found
                self._on_change()
            self._stop.wait(self._candidacy.pace.retry_ms / 1000)

    def step(self) -> None:
        """Reads the Lease, and writes it if due. The thread calls this every `retry` interval."""
        try:
            self.trouble = self._read_and_write()
        except Unreachable as fault:
            self.trouble = str(fault)
        except Exception as fault:  # noqa: BLE001 - a thread that ends would leave nobody to lead, without a word
            self.trouble = f"leader election failed: {type(fault).__name__}: {fault}"
        if not self.trouble and leadership.is_led(self._candidate_state, monotonic_ms(), self._candidacy.pace):
            self._led_at = monotonic_ms()

    def _read_and_write(self) -> str:
        """Returns an error message, or an empty string."""
        answer = self._server.get(self._candidacy.path)
        if answer.status not in {200, 404}:
            return f"cannot read the Lease: {said(answer)}"
        record = _record(answer.body) if answer.status == 200 else None
        self._see(record)
        claimed = leadership.claim(self._candidate_state, monotonic_ms(), self._candidacy.pace)
        if claimed is None or self._stop.is_set():
            return ""
        sent_at = monotonic_ms()
        answer = self._write(claimed)
        if answer.status in {200, 201}:
            self._hold(_record(answer.body), sent_at)
            return ""
        # Another candidate was faster: the next read shows which.
        return "" if answer.status == 409 else f"cannot write the Lease: {said(answer)}"

    def _see(self, record: LeaseRecord | None) -> None:
        before = self._candidate_state.record
        self._candidate_state = leadership.observe_record(self._candidate_state, record, monotonic_ms())
        if before and record and record != before and record.spec.holder_identity not in {"", self._candidacy.me}:
            self._renewals_of_others += 1
        if self._candidate_state.leads_until is None and self._term is not None:
            self._term.end()
            self._term = None

    def _hold(self, record: LeaseRecord, sent_at: Monotonic) -> None:
        state, pace = self._candidate_state, self._candidacy.pace
        self._candidate_state = leadership.written(state, record, sent_at, monotonic_ms(), pace)
        until = self._candidate_state.leads_until
        if until is None:
            self._term = None
        elif self._term is None:
            self._term = LeaderFence(until)
        elif not self._term.extend(until):
            self._candidate_state = msgspec.structs.replace(self._candidate_state, leads_until=None)
            self._term = None
        if self._term is not None and self._stop.is_set():  # resigned while the request was in progress
            self._term.end()

    def _write(self, claimed: Claim) -> ApiResponse:
        now = timestamp(Instant(wall_clock() // 1000 * 1000)).replace("Z", ".000000Z")  # in Kubernetes' format
        spec = claimed.spec
        spec = msgspec.structs.replace(spec, renew_time=now, acquire_time=spec.acquire_time or now)
        metadata: dict[str, Any] = {"name": self._candidacy.name, "namespace": self._candidacy.namespace}
        if seen_at := self._seen_at():
            metadata["annotations"] = {names.SEEN_AT: timestamp(seen_at)}
        manifest = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        if claimed.after is None:
            return self._server.send(ApiRequest("POST", self._candidacy.folder, msgspec.json.encode(manifest)))
        metadata["resourceVersion"] = claimed.after.version
        return self._server.send(ApiRequest("PUT", self._candidacy.path, msgspec.json.encode(manifest)))


def _record(body: bytes) -> LeaseRecord:
    lease = msgspec.json.decode(body, type=Lease)
    return LeaseRecord(lease.spec, lease.metadata.resource_version)
