"""Carries out decisions on a real cluster. Owner of the threads that write, while a plan is carried out.

Threads, because a write takes the API server some milliseconds and a plan may have thousands. One that fails stops no
other but those that come after it.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from reconciler.kube.api_server import Writer
from reconciler.kube.apply.events import EventNote, Events, event_notes, is_reported, pool_event_notes
from reconciler.kube.apply.execute import WriteExecution
from reconciler.kube.apply.fenced_writer import FencedWriter, WriteLimits
from reconciler.kube.apply.token_bucket import Bucket
from reconciler.model import names
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.outcome import Outcome
from reconciler.ports import Fence
from reconciler.protocol.write_order import WriteOrder, verb_of

__all__ = ["Executor", "WriteLimits"]


class Executor:
    """One identity that writes to one cluster; `namespace` is where what is lent is noted."""

    def __init__(
        self, server: Writer, namespace: str = names.LEASES_NAMESPACE, limits: WriteLimits | None = None
    ) -> None:
        limits = limits or WriteLimits()
        self._server, self._namespace, self._limits = server, namespace, limits
        self._bucket = Bucket(limits.writes_per_second, limits.burst)
        self._events = Events(server, limits.events_per_second, limits.burst_of_events)

    def apply(self, decisions: Sequence[Decision], fence: Fence) -> Iterator[Outcome]:
        """All that are neither holds nor `would`; one outcome each, as they come. Nothing is sent before it is walked,
        and what has not begun when walking stops never begins."""
        turns = WriteOrder(decisions)
        pen = FencedWriter(self._server, self._bucket, fence, self._limits)
        threads = ThreadPoolExecutor(self._limits.threads, thread_name_prefix="apply")
        under_way: set[Future[Outcome]] = set()
        written: list[Decision] = []
        try:
            while True:
                under_way |= {threads.submit(self._carried_out, each, pen, written) for each in turns.ready()}
                if not under_way:
                    break
                ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                outcomes = [each.result() for each in ended]
                for outcome in outcomes:
                    turns.ended(outcome)
                yield from outcomes
        finally:
            threads.shutdown(cancel_futures=True)
            for note in pool_event_notes(written) if pen.may_write else ():
                self._events.tell(note)
        yield from turns.left()

    def tell(self, note: EventNote) -> None:
        """An Event that no write goes with. Never raises, and never waits for its turn."""
        self._events.tell(note)

    def _carried_out(self, decision: Decision, pen: FencedWriter, written: list[Decision]) -> Outcome:
        """What was written is added to `written`."""
        try:
            carried = WriteExecution(decision, pen, self._namespace).carry_out()
        except Exception as fault:  # noqa: BLE001 - what one object brings out must not stop the others
            text = f"it broke off, by a fault of reconciler or of what answers: {type(fault).__name__}: {fault}"
            return Outcome(decision.subject, verb_of(decision), "unknown", text)
        if carried.wrote and is_reported(decision) and pen.may_write:
            written.append(decision)
            for each in event_notes(decision, carried.uid):
                self._events.tell(each)
        settled = carried.settled
        return Outcome(decision.subject, verb_of(decision), settled.result, settled.detail)
