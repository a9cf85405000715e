"""What was so at every instant of a drain, found out from the history alone."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from reconciler.model import names
from tests.lab import fleet
from tests.lab.api import Manifest
from tests.stages.live_drains.applications import LABEL, is_agent
from tests.stages.live_drains.drained import Runs, marks
from tests.stages.live_drains.history import Moment

Named = tuple[str, str]  # pool, name of an application


@dataclass
class Told:
    """By which promises are judged."""

    most_at_once: Counter[str] = field(default_factory=Counter)  # nodes of a pool being drained with pods on them
    least_ready: dict[Named, int] = field(default_factory=dict)  # of an application, and not on their way out
    waited: set[str] = field(default_factory=set)  # pods that the scheduler found no place for
    batches: dict[str, set[str]] = field(default_factory=dict)  # nodes by their taint's value: tainted together
    emptied: set[str] = field(default_factory=set)  # values of taints under which pods left
    agents: int = 0  # pods of DaemonSets that left
    # What must not be.
    too_soon: list[str] = field(default_factory=list)  # pods that left before all nodes of a batch were tainted
    agents_too_soon: list[str] = field(default_factory=list)  # those of DaemonSets that left before all others had
    not_empty: set[str] = field(default_factory=set)  # nodes that began to be deleted with other pods on them


class _Judge:
    """Owner of what was found while moments go by."""

    def __init__(self, applications: Iterable[Named]) -> None:
        self.told = Told(least_ready=dict.fromkeys(applications, 10**6))
        self._tainted: defaultdict[str, dict[str, int]] = defaultdict(dict)  # value -> node -> since which version
        self._left: dict[str, tuple[str, str, int]] = {}  # pod -> its node, the value there, and at which version

    def sees(self, moment: Moment) -> None:
        event, name = moment.event, moment.event.object["metadata"]["name"]
        if event.plural == "nodes":
            self._node(moment, event.object)
        elif event.object["metadata"].get("deletionTimestamp") and name not in self._left:
            self._leaves(moment, event.object)
        if _waits(event.object):
            self.told.waited.add(name)
        self._count(moment)

    def _node(self, moment: Moment, node: Manifest) -> None:
        name, value = node["metadata"]["name"], marks(node).get(names.DRAINING)
        if value is not None:
            self._tainted[value].setdefault(name, moment.event.version)
        if "deletionTimestamp" in node["metadata"] and moment.event.type != "DELETED" and _others(moment, name):
            self.told.not_empty.add(name)

    def _leaves(self, moment: Moment, pod: Manifest) -> None:
        name, node = pod["metadata"]["name"], moment.nodes.get(pod["spec"].get("nodeName", ""))
        if node is None or "deletionTimestamp" in node["metadata"] or not (value := marks(node).get(names.DRAINING)):
            return
        self._left[name] = (node["metadata"]["name"], value, moment.event.version)
        self.told.emptied.add(value)
        if is_agent(pod):
            self.told.agents += 1
            self.told.agents_too_soon += [name] if _others(moment, node["metadata"]["name"]) else []

    def _count(self, moment: Moment) -> None:
        ready = Counter(_application(pod) for pod in moment.pods.values() if _is_ready(pod))
        self.told.least_ready = {each: min(least, ready[each]) for each, least in self.told.least_ready.items()}
        busy = {pod["spec"].get("nodeName") for pod in moment.pods.values() if not is_agent(pod)}
        drained = (node for name, node in moment.nodes.items() if name in busy and names.DRAINING in marks(node))
        for pool, count in Counter(node["metadata"]["labels"][names.KARPENTER_POOL] for node in drained).items():
            self.told.most_at_once[pool] = max(self.told.most_at_once[pool], count)

    def end(self) -> Told:
        since = {value: max(nodes.values()) for value, nodes in self._tainted.items()}
        self.told.too_soon = [pod for pod, (_, value, version) in self._left.items() if version < since[value]]
        self.told.batches = {value: set(nodes) for value, nodes in self._tainted.items()}
        return self.told


def judged(moments: Iterable[Moment], runs: Runs) -> Told:
    """Of applications that were whole when the history began."""
    judge = _Judge((pool, each.name) for pool, applications in runs.items() for each in applications)
    for moment in moments:
        judge.sees(moment)
    return judge.end()


def below_budget(told: Told, runs: Runs) -> dict[Named, int]:
    """Applications of which fewer pods were ready than their budget asks for, at some instant."""
    asked = {(pool, each.name): each.least_ready for pool, applications in runs.items() for each in applications}
    return {name: least for name, least in told.least_ready.items() if least < asked[name]}


def broken(told: Told, runs: Runs) -> list[str]:
    """What must not have been, whatever happened, in words."""
    found = {
        "left before all nodes of its batch were tainted": told.too_soon,
        "left before all others, though of a DaemonSet": told.agents_too_soon,
        "was deleted with pods on it": sorted(told.not_empty),
        "found no place": sorted(told.waited),
        "had fewer ready than its budget asks for": sorted(map(str, below_budget(told, runs))),
    }
    return [f"{what}: {', '.join(named)}" for what, named in found.items() if named]


def _others(moment: Moment, node: str) -> bool:
    """Whether pods run there that did not come with the node."""
    return any(not is_agent(pod) for pod in moment.pods_on(node))


def _application(pod: Manifest) -> Named:
    return pod["metadata"]["namespace"], pod["metadata"].get("labels", {}).get(LABEL, "")


def _is_ready(pod: Manifest) -> bool:
    """As budgets count."""
    conditions = pod.get("status", {}).get("conditions", ())
    says_so = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return says_so and fleet.is_running(pod) and "deletionTimestamp" not in pod["metadata"]


def _waits(found: Manifest) -> bool:
    conditions = found.get("status", {}).get("conditions", ())
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)
