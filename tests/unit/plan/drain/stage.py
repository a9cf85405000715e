"""A small fleet, as tests/cases/drain/ describes it (see the top of candidates.yaml), and what is decided for it."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import (
    Condition,
    LabelSelector,
    Lease,
    LeaseSpec,
    Metadata,
    Namespace,
    OwnerReference,
)
from reconciler.model.cluster.observed import Observed, Quiet, Unread
from reconciler.model.cluster.pod import (
    Pod,
)
from reconciler.model.cluster.workload import (
    BudgetSpec,
    BudgetStatus,
    PodDisruptionBudget,
    Workload,
    WorkloadSpec,
    WorkloadStatus,
)
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import timestamp
from reconciler.model.plan.drain_memory import Batch, Begun, DrainMemory, Emptied, Evicted, InVain, Load, Moved, Setback
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Hints, Memory
from reconciler.model.plan.plan import Plan
from reconciler.model.policy.gpu import GpuPool, SmartPods
from reconciler.model.policy.guards import ChangeGuard
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner
from reconciler.plan.check import check
from reconciler.plan.drain.blockers import moves
from reconciler.plan.drain.context import WATCHED
from reconciler.plan.drain.memory import written
from reconciler.plan.drain.planner import drain
from reconciler.plan.planner import plan
from reconciler.plan.recent_evictions import owner_of
from reconciler.plan.scaling.planner import scaling
from tests import builders, folders
from tests.unit.plan.drain.objects import (
    annotations,
    claims,
    imagined,
    node_of,
    or_nothing,
    owner,
    pod_asks,
    reports,
    tried,
    uids,
)
from tests.unit.plan.scaling.stage import NOW, POLICY, after
from tests.unit.policy.texts import convert

FOLDER = folders.CASES / "drain"
SELECTED = "app"
KNOWN = frozenset(kind for _, kind in WATCHED)

Json = dict[str, Any]


def tables() -> dict[str, Json]:
    """All cases; no two files have one of the same name."""
    found: dict[str, Json] = {}
    for file in sorted(FOLDER.glob("*.yaml")):
        own: dict[str, Json] = yaml.safe_load(file.read_text())
        assert found.keys().isdisjoint(own), file
        found |= own
    return found


class World:
    """What a case describes."""

    def __init__(self, case: Json) -> None:
        case = {**case, "nodes": dict(_copied(case["nodes"]))}
        self._case = case
        self._apps: dict[str, Json] = case.get("apps", {})
        self._count: Counter[str] = Counter()
        self.pods = list(self._pods())
        observed = Observed(
            unread=tuple(Unread(kind, "timed out") for kind in case.get("unread", [])),
            seen_at=after(-case.get("seen", 0)),
            quiet=tuple(Quiet(kind, after(-100)) for kind in case.get("quiet", [])),
            nodes=tuple(
                node_of(name, said or {}) for name, said in case["nodes"].items() if not or_nothing(said).get("gone")
            ),
            pods=tuple(self.pods),
            budgets=tuple(self._budgets()),
            workloads=tuple(self._workloads()),
            leases=tuple(self._leases()),
            policies=(*claims(case), *reports(case)),
            namespaces=(Namespace(Metadata(names.OWN_NAMESPACE)),),
        )
        memory = Memory(imagined=tuple(sorted(imagined(case))), drained=self._drained())
        hints = Hints(self._hints(case.get("hints", {}), observed), dict(tried(case)))
        self.inputs = Inputs(self._desired(), observed, NOW, memory, hints, budget=case.get("budget", 1_000_000))

    def _hints(self, said: dict[str, str], observed: Observed) -> dict[str, dict[str, dict[str, int]]]:
        found: dict[str, dict[str, Counter[str]]] = {}
        classes = Fleet(observed).snapshot.classes
        for pod in self.pods:
            if pod.name in said:
                places = found.setdefault(pod.node, {}).setdefault(classes.of(pod).anew.key, Counter())
                places[said[pod.name]] += 1
        return {node: dict(by_class) for node, by_class in found.items()}

    def planned(self) -> Plan:
        """What comes of it; no invariant is broken by it."""
        fleet = Fleet(self.inputs.observed)
        before = fleet.snapshot.fingerprint()
        made = plan(self.inputs, fleet, (scaling, drain) if self._case.get("scales") else (drain,))
        check(self.inputs, fleet, made)
        assert fleet.snapshot.fingerprint() == before
        return made

    def _desired(self) -> Desired:
        case = self._case
        pools = {"a100", *(said.get("pool", "a100") for said in map(or_nothing, case["nodes"].values()))}
        pools -= set(case.get("undeclared", ()))
        said = case.get("policy", {})
        usual = {"poolNames": ["a100"], "utilizationThresholdPercent": 50}
        drains = [] if said == "none" else [_declared("DrainPolicy", "drains", usual | said, DrainPolicy)]
        drains += [_declared("DrainPolicy", name, said, DrainPolicy) for name, said in case.get("others", {}).items()]
        keeps = {"poolName": "a100", "minSize": 0, "maxSize": 100, "minGPUUtilizationPercent": 80}
        scaled = [_declared("NodeProvisioner", "a100", keeps | case["keep"], NodeProvisioner)] if "keep" in case else []
        guards = [_declared("ChangeGuard", "fleet", case["guard"], ChangeGuard)] if "guard" in case else []
        return Desired(
            "4c1f9e2",
            "prod",
            tuple(_declared("GpuPool", name, _pool(case, name), GpuPool) for name in sorted(pools)),
            provisioners=tuple(scaled),
            drains=tuple(drains),
            guards=tuple(guards),
        )

    def _pods(self) -> Iterator[Pod]:
        for node, said in self._case["nodes"].items():
            for each in or_nothing(said).get("pods", []):
                yield self._pod(each, node)
        for each in self._case.get("waiting", []):
            yield self._pod(each, "")

    def _pod(self, said: str, node: str, phase: str = "Running") -> Pod:
        """web 2: the next pod of web, with 2 GPUs; further words say how it is, as candidates.yaml has them."""
        app, *words = said.split()
        gpus = next((word for word in words if word.isdigit()), "0")
        traits = set(words)
        asked = dict(word.split("=") for word in words if "=" in word)
        kind = self._apps.get(app, {})
        number, self._count[app] = self._count[app], self._count[app] + 1
        asks = pod_asks(kind | ({"grace": int(asked["grace"])} if "grace" in asked else {}), gpus)
        is_ready = Condition("Ready", "False" if "unready" in traits else "True")
        waits = (Condition("PodScheduled", "False", "Unschedulable"),) if not node else ()
        phase = "Succeeded" if "done" in traits else phase if node and "starting" not in traits else "Pending"
        return builders.pod(
            f"{app}-{number}",
            namespace=kind.get("namespace", SmartPods().namespace if kind.get("smart") is True else "team"),
            creation_timestamp=timestamp(after(-5 if "new" in traits else -kind.get("age", 3_600))),
            deletion_timestamp=_deleted_at(traits, asked),
            deletion_grace_period_seconds=int(asked["grace"]) if "grace" in asked else None,
            labels={SELECTED: app} | ({names.COMPONENT: names.SMART_SCHEDULER} if kind.get("smart") else {}),
            annotations=annotations(kind),
            owner_references=owner(app, kind),
            node_name=node,
            phase=phase,
            start_time=timestamp(after(-3_600)),
            conditions=waits or (is_ready,),
            **asks,
        )

    def _budgets(self) -> Iterator[PodDisruptionBudget]:
        for app, kind in self._apps.items():
            for number, said in enumerate(kind.get("budgets", [kind["budget"]] if "budget" in kind else [])):
                spec = BudgetSpec(
                    selector=LabelSelector({SELECTED: app}), unhealthy_pod_eviction_policy=kind.get("unhealthy", "")
                )
                healthy = kind.get("healthy", 0)
                status = (
                    BudgetStatus() if said is None else BudgetStatus(said, healthy, healthy or 1, observed_generation=1)
                )
                name = app if not number else f"{app}-{number}"
                metadata = Metadata(name, kind.get("namespace", "team"), generation=kind.get("edited", 1))
                yield PodDisruptionBudget(metadata, spec, status)

    def _workloads(self) -> Iterator[Workload]:
        yield from self._controllers()
        for app, kind in self._apps.items():
            if "replicas" in kind:
                spec = WorkloadSpec(replicas=kind["replicas"])
                yield Workload(Metadata(app, "team", f"owner-{app}"), "ReplicaSet", spec)
            if "job" in kind:
                at_once, wanted, done = kind["job"]
                spec = WorkloadSpec(parallelism=at_once, completions=wanted)
                yield Workload(Metadata(app, "team", f"owner-{app}"), "Job", spec, WorkloadStatus(succeeded=done))

    def _controllers(self) -> Iterator[Workload]:
        """Of applications that say no more of them; each lacks as many pods as were evicted. gone: true, leaving or
        made anew."""
        evicted = [name.split()[0] for name in self._case.get("remembers", {}).get("evicted", {})]
        present = [pod.name for pod in self.pods if not pod.metadata.leaving and not pod.is_finished]
        for app in sorted({name.rpartition("-")[0] for name in (*(pod.name for pod in self.pods), *evicted)}):
            said = self._apps.get(app, {})
            _, _, kind = said.get("owner", "ReplicaSet").rpartition("/")
            if kind in KNOWN and not {"replicas", "job"} & said.keys() and said.get("gone") is not True:
                count = sum(name.rpartition("-")[0] == app for name in {*present, *evicted})
                spec = WorkloadSpec(replicas=count, parallelism=count)
                uid = f"owner-{app}" if said.get("gone") != "made anew" else "another"
                leaves = timestamp(NOW) if said.get("gone") == "leaving" else ""
                metadata = Metadata(app, said.get("namespace", "team"), uid, deletion_timestamp=leaves)
                yield Workload(metadata, kind, spec)

    def _leases(self) -> Iterator[Lease]:
        for node, said in self._case["nodes"].items():
            for number in range(or_nothing(said).get("lent", 0)):
                owner = (OwnerReference("Node", node),)
                metadata = Metadata(f"{node}-{number}", names.LEASES_NAMESPACE, owner_references=owner)
                yield Lease(metadata, LeaseSpec(holder_identity="uid-of-a-pod"))

    def _drained(self) -> DrainMemory:
        said = self._case.get("remembers", {})
        batch = said.get("batch")
        evicted = []
        for pod, (node, ago, *first) in said.get("evicted", {}).items():
            made = self._evicted(pod, node)
            title, uid, began = made.title, made.metadata.uid, after(-(first[0] if first else ago))
            of = {"owner": owner_of(made), "gang": self._gang_of(made)}
            is_late = "late" in pod.split()
            evicted.append(Evicted(after(-ago), title, uid, node, "a100", began, written(made), **of, is_late=is_late))
        return DrainMemory(
            batch=_batch(batch) if batch else None,
            evicted=tuple(evicted),
            emptied=tuple(Emptied(node, f"uid-{node}", after(-ago)) for node, ago in said.get("emptied", {}).items()),
            setbacks=tuple(
                Setback(node, f"uid-{node}", after(-ago), "GivenBack", times)
                for node, (ago, times) in said.get("setbacks", {}).items()
            ),
            moved=tuple(
                Moved("a100", f"team/owner-{app}", after(-since), after(-ago), *wanted)
                for app, (since, ago, *wanted) in said.get("moved", {}).items()
            ),
            in_vain=tuple(_in_vain(pool, *told) for pool, told in said.get("in_vain", {}).items()),
            begun=tuple(Begun(pool, Load(*load)) for pool, load in said.get("begun", {}).items()),
            begin_at=said.get("begin_at", ""),
        )

    def _gang_of(self, pod: Pod) -> str:
        claim = self._case.get("claims", {}).get(self._apps.get(pod.name.rpartition("-")[0], {}).get("claim"), {})
        return f"team/{claim['gangRef']}" if "gangRef" in claim else ""

    def _evicted(self, said: str, node: str) -> Pod:
        """As it was: web-3 2 is a pod of that name with 2 GPUs; it may be there still."""
        name, gpus, *_ = said.split()
        app = name.rpartition("-")[0]
        kind = self._apps.get(app, {})
        made_by = owner(app, kind)
        asks = pod_asks(kind, gpus)
        return builders.pod(
            name, namespace="team", labels={SELECTED: app}, owner_references=made_by, node_name=node, phase="", **asks
        )


def _in_vain(pool: str, ago: int, times: int, load: Json | None = None) -> InVain:
    if load is None:
        return InVain(pool, after(-ago), times)
    return InVain(pool, after(-ago), times, Load(*(load[key] for key in ("busy", "pods", "gpus", "spare", "at_once"))))


def homes(world: World, made: Plan) -> dict[str, str]:
    """Where each pod would go, by its uid: those of a class in the order of their names."""
    classes = Fleet(world.inputs.observed).snapshot.classes
    rooms = {
        (source, key): list(Counter(places).elements())
        for source, by_class in made.hints.destinations.items()
        for key, places in by_class.items()
    }
    found = {}
    evicted = [msgspec.json.decode(each.pod, type=Pod) for each in world.inputs.memory.drained.evicted]
    for pod in sorted([*world.pods, *evicted], key=lambda each: each.name):
        places = rooms.get((pod.node, classes.of(pod).anew.key))
        if places and moves(pod):
            found[pod.metadata.uid] = places.pop(0)
    return found


def _copied(nodes: dict[str, Json]) -> Iterator[tuple[str, Json]]:
    """Each node; of one with `copies`, as many, named n000, n001 and so on."""
    for name, said in nodes.items():
        copies = or_nothing(said).get("copies")
        if copies is None:
            yield name, said
        for number in range(copies or 0):
            yield f"{name}{number:03}", {key: value for key, value in said.items() if key != "copies"}


def _deleted_at(traits: set[str], asked: dict[str, str]) -> str:
    """A pod that is stuck was to be gone ten minutes ago. `deleted=60 grace=600`: seconds ago, and its grace."""
    if "deleted" in asked:
        return timestamp(after(int(asked["grace"]) - int(asked["deleted"])))
    return timestamp(NOW) if "leaving" in traits else timestamp(after(-600)) if "stuck" in traits else ""


def _batch(said: Json) -> Batch:
    return Batch(after(-said["ago"]), uids(said["nodes"]), after(-said["torn"]) if "torn" in said else None)


def _declared(kind: str, name: str, body: Json, of: Any) -> Declared[Any]:
    return Declared(kind, name, convert(body, of), (("", POLICY),))


def _pool(case: Json, name: str) -> Json:
    return {
        "mode": "Enforce",
        "devices": {"model": "a100", "count": 8, "memory": "40Gi"},
        "instanceTypes": [{"name": "p4d.24xlarge", "pricePerHour": {"on-demand": "21.96", "spot": "9.00"}}],
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"},
        **case.get("pool", {}),
        **case.get("pools", {}).get(name, {}),
    }
