"""The loop's step on a thread of its own, while this replica leads; a Looping is the owner of that thread.

A thread, since the step is synchronous and waits for the planner and for the API server, and the endpoints must not.
"""

import threading
from collections.abc import Callable

import msgspec

from reconciler.controller.log import Log
from reconciler.controller.wake_clock import WakingClock
from reconciler.kube.leader import Leader
from reconciler.loop import Cycle
from reconciler.model.instant import Instant

_AFTER_A_FAULT_MS = 5_000


class LoopStep(msgspec.Struct, frozen=True):
    """What a step needs."""

    cycle: Cycle
    leader: Leader
    clock: WakingClock
    log: Log
    is_ready: Callable[[], bool]  # policies and cluster have been read once
    keep_up: Callable[[], object]  # takes in what was seen, though nothing is planned


class LoopThread:
    """Runs until it is stopped."""

    def __init__(self, step: LoopStep) -> None:
        self._step = step
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop", daemon=True)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_seconds: float) -> bool:
        """No step begins any more; says whether the last one is over."""
        self._stop.set()
        self._step.clock.hurry()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                wake_at = self._once()
            except Exception as fault:  # noqa: BLE001 - a thread that ends would leave the cluster alone without a word
                text = f"a cycle broke off, by a fault of reconciler: {type(fault).__name__}: {fault}"
                self._step.log.tell("fault", text, "error")
                wake_at = Instant(self._step.clock.now() + _AFTER_A_FAULT_MS)
            self._step.clock.wait(wake_at)

    def _once(self) -> Instant | None:
        """One cycle, if this replica leads and has something to go by. Says when to look again."""
        term = self._step.leader.term()
        if term is None or not self._step.is_ready():
            self._step.keep_up()  # or watches would stand still, and the next leader would begin with old news
            return None
        cycled = self._step.cycle.once(term)
        for text in cycled.unpublished:
            self._step.log.tell("fault", text, "error")
        return cycled.wake_at
