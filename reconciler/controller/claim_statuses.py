"""Publisher of the statuses of GpuClaims.

There may be thousands of claims, and the rate limit of writes is shared with the actions of plans. So each cycle writes
a limited number of statuses. A status that lists many pods is written less often: the API server parses and compares
the whole list for each write, and the pods of a large claim are bound one after the other. A status of which only a
sentence differs is written again once a minute: sentences name numbers of free GPUs, which change with each pod.
"""

from collections.abc import Callable

from reconciler.loop.retries import Attempts
from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import Ref
from reconciler.model.plan.inputs import CycleResult
from reconciler.ports import Clock, Cluster, Fence
from reconciler.report.claim_status import ClaimStatus, claim_statuses

MOST_A_CYCLE = 10
REWORDED_AFTER_MS = 60_000
MS_A_POD = 10  # of the list, between two writes of a status: a hundred pods, a second


class ClaimStatusPublisher:
    """A Publisher; without a fence, nothing is written. Owner of the times of the last writes."""

    def __init__(self, cluster: Cluster, clock: Clock, fence: Callable[[], Fence | None]) -> None:
        self._cluster, self._clock, self._fence = cluster, clock, fence
        self._attempts = Attempts()
        self._written_at: dict[Ref, Instant] = {}

    def publish(self, cycled: CycleResult) -> Instant | None:
        fence = self._fence()
        if fence is None or cycled.inputs is None or cycled.plan is None:
            return None
        now = cycled.at
        self._written_at = {ref: at for ref, at in self._written_at.items() if 0 <= now - at < REWORDED_AFTER_MS}
        statuses = [(self._due_at(each, now), each) for each in claim_statuses(cycled.inputs, cycled.plan)]
        # New facts first. Writes wake the loop, and the next cycle goes on with the others.
        settled = sorted((each for at, each in statuses if at <= now), key=lambda each: each.is_rewording)
        due = self._attempts.due([each.decision for each in settled], now)[:MOST_A_CYCLE]
        decisions = {each.subject: each for each in due}
        for outcome in self._cluster.apply(due, fence) if due else ():
            self._attempts.learn(decisions[outcome.subject], outcome, self._clock.now())
            if outcome.result == "done":
                self._written_at[outcome.subject] = now
        return min((at for at, _ in statuses if at > now), default=None)

    def _due_at(self, status: ClaimStatus, now: Instant) -> Instant:
        written_at = self._written_at.get(status.decision.subject)
        if written_at is None:
            return now
        wait_ms = REWORDED_AFTER_MS if status.is_rewording else min(status.pods * MS_A_POD, REWORDED_AFTER_MS)
        return later(written_at, wait_ms)
