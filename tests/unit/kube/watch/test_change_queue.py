"""The handover is bounded, keeps the order, and lets go of everybody when it is closed."""

import threading

from reconciler.kube.watch.changes import Change, ChangeQueue, Identity

CHANGES = [Identity(str(number)) for number in range(100)]


def telling(handover: ChangeQueue, changes: list[Change]) -> threading.Thread:
    def tell() -> None:
        for change in changes:
            handover.tell(change)

    thread = threading.Thread(target=tell)
    thread.start()
    return thread


def nothing() -> None:
    """Nobody is waiting for news."""


def test_who_tells_waits_while_there_is_no_room_and_nothing_is_lost() -> None:
    handover = ChangeQueue(nothing, most_changes=10)
    thread = telling(handover, [*CHANGES])
    taken: list[Change] = []
    while len(taken) < len(CHANGES):
        batch = handover.take()
        assert len(batch) <= 10
        taken += batch
    thread.join(20)
    assert taken == CHANGES


def test_closing_lets_go_of_who_waits_for_room() -> None:
    news = threading.Event()
    handover = ChangeQueue(news.set, most_changes=10)
    thread = telling(handover, [*CHANGES])
    assert news.wait(20)
    handover.close()
    thread.join(20)
    assert not thread.is_alive()
    assert len(handover.take()) <= 10
