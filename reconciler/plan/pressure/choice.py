"""Choice of the pods that leave a node under pressure.

Pods with the lowest load come first; pods whose load is unknown come last; ties are ordered by uid. Pods are chosen
until the migrations account for all pressure of all resources. A pod that relieves no resource under pressure is not
chosen. Then each chosen pod that changes nothing is given up, the highest load first: without any of the remaining
pods, more pressure would be left. If that made room for a pod that was refused, the refused pods are tried again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.model.plan.decision import Reason
from reconciler.model.plan.pressure import ElasticPod

# Reserves the destination of a pod, and returns its name; or why the pod stays.
Reserve = Callable[[ElasticPod], str | Reason]
GiveBack = Callable[[ElasticPod], None]  # the opposite


class MigrationChoice(msgspec.Struct):
    """The pods that leave one node, and the pods that stay although they would relieve the node."""

    chosen: dict[str, str] = {}  # uid -> destination
    refused: dict[str, Reason] = {}  # by uid


def in_order(pods: Iterable[ElasticPod], loads: Mapping[str, int]) -> list[ElasticPod]:
    """Pods in the order in which they are chosen."""
    return sorted(pods, key=lambda pod: (pod.uid not in loads, loads.get(pod.uid, 0), pod.uid))


def choose(ledger: NodeLedger, pods: Sequence[ElasticPod], reserve: Reserve, give_back: GiveBack) -> MigrationChoice:
    """The choice among pods in order. Afterwards, the chosen pods are migrating in the ledger."""
    choice, by_uid = MigrationChoice(), {each.uid: each for each in pods}
    given_up: set[str] = set()
    while True:
        _add(ledger, [each for each in pods if each.uid not in given_up], reserve, choice)
        useless = superfluous(ledger, list(reversed(choice.chosen)))
        for uid in useless:
            del choice.chosen[uid]
            give_back(by_uid[uid])
        given_up.update(useless)
        if not useless or not ledger.is_pressed:
            return choice


def _add(ledger: NodeLedger, pods: Sequence[ElasticPod], reserve: Reserve, choice: MigrationChoice) -> None:
    for pod in pods:
        if not ledger.is_pressed:
            return
        if pod.uid in choice.chosen or not relieves(ledger, pod):
            continue
        place = reserve(pod)
        if isinstance(place, Reason):
            choice.refused[pod.uid] = place
            continue
        choice.refused.pop(pod.uid, None)
        choice.chosen[pod.uid] = place
        ledger.migrate(pod.uid, is_migrating=True)


def relieves(ledger: NodeLedger, pod: ElasticPod) -> bool:
    """Whether the pod holds or lacks any resource on which pressure is left."""
    return any(
        ledger.pressure(name).left and pod.reserved(name) - pod.buffer(name) + pod.lacks.get(name, 0) > 0
        for name in ledger.bounds
    )


def superfluous(ledger: NodeLedger, uids: Iterable[str]) -> tuple[str, ...]:
    """Migrating pods, tried in this order, without which no more pressure is left. They stop migrating in the
    ledger.
    """
    found = []
    for uid in uids:
        before = _left(ledger)
        ledger.migrate(uid, is_migrating=False)
        if _left(ledger) == before:
            found.append(uid)
        else:
            ledger.migrate(uid, is_migrating=True)
    return tuple(found)


def _left(ledger: NodeLedger) -> list[int]:
    return [ledger.pressure(name).left for name in ledger.bounds]
