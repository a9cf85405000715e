"""A small fleet with elastic pods, as tests/cases/pressure/migration.yaml describes it, and what is decided for it."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Condition, LabelSelector, Metadata
from reconciler.model.cluster.observed import Observed, Quiet, Unread
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.workload import BudgetSpec, BudgetStatus, PodDisruptionBudget, Workload, WorkloadSpec
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import timestamp
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Memory
from reconciler.model.plan.plan import Plan
from reconciler.model.plan.pressure import Bounds, ElasticPod, LedgerPod, NodePods, PlainPod, PressureState
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.guards import ChangeGuard
from reconciler.model.policy.scaling import DrainPolicy, PressurePolicy
from reconciler.model.quantity import Percent
from reconciler.plan.check import check
from reconciler.plan.drain.planner import drain
from reconciler.plan.planner import plan
from reconciler.plan.pressure.memory import FailedMigration, Migration, MigrationMemory, memory_of
from reconciler.plan.pressure.planner import pressure
from reconciler.plan.pressure.reasons import PLANNER
from tests import builders
from tests.unit.plan.drain.objects import annotations, claims, node_of, or_nothing, owner, pod_asks
from tests.unit.plan.scaling.stage import NOW, POLICY, after
from tests.unit.policy.texts import convert

POOL = "a100"
Json = dict[str, Any]


class World:
    """What a case describes."""

    def __init__(self, case: Json) -> None:
        self._case = case
        self._nodes: dict[str, Json] = {name: or_nothing(said) for name, said in case["nodes"].items()}
        self._said = {pod: words for node in self._nodes.values() for pod, words in node.get("pods", {}).items()}
        pods = [self._pod(name, node, words) for node, said in self._nodes.items() for name, words in _pods(said)]
        pods = [each for each in pods if not self._said[each.name].get("unobserved")]
        observed = Observed(
            unread=tuple(Unread(kind, "timed out") for kind in case.get("unread", [])),
            quiet=tuple(Quiet(kind, after(-100)) for kind in case.get("quiet", [])),
            seen_at=NOW,
            nodes=tuple(node_of(name, {"gpus": 0, "cpu": 10, **said}) for name, said in self._nodes.items()),
            pods=tuple(pods),
            budgets=tuple(self._budgets()),
            workloads=tuple(
                Workload(Metadata(name, "team", f"owner-{name}"), "ReplicaSet", WorkloadSpec(replicas=9))
                for name in sorted({_app(name, words) for name, words in self._said.items()})
            ),
            policies=tuple(claims(case)),
        )
        state = None if case.get("state") == "none" else self._state()
        memory = Memory().with_section(PLANNER, self._memory())
        self.inputs = Inputs(self._desired(), observed, NOW, memory, pressure=state)

    def planned(self) -> Plan:
        """What comes of it; no invariant is broken by it, and the what-if fleet is as before."""
        fleet = Fleet(self.inputs.observed)
        before = fleet.snapshot.fingerprint()
        made = plan(self.inputs, fleet, (pressure, drain) if self._case.get("drains") else (pressure,))
        check(self.inputs, fleet, made)
        assert fleet.snapshot.fingerprint() == before
        return made

    def _desired(self) -> Desired:
        case = self._case
        names_of_pools = sorted({POOL, *(said.get("pool", POOL) for said in self._nodes.values())})
        policy = {
            "poolNames": [POOL],
            "resources": {"cpu": {"system": "0", "watermark": "80%"}},
            "computeUnit": {"cpu": "1"},
            **self._policy,
        }
        declared = _declared("PressurePolicy", "watch", policy, PressurePolicy)
        pressures = () if case.get("policy") == "none" else (declared,)
        drains = (_declared("DrainPolicy", "drains", case["drains"], DrainPolicy),) if case.get("drains") else ()
        guards = (_declared("ChangeGuard", "fleet", case["guard"], ChangeGuard),) if "guard" in case else ()
        pools = tuple(_declared("GpuPool", name, _pool(case), GpuPool) for name in names_of_pools)
        return Desired("4c1f9e2", "prod", pools, drains=drains, pressures=pressures, guards=guards)

    @property
    def _policy(self) -> Json:
        said = self._case.get("policy")
        return {} if said == "none" else or_nothing(said)

    def _pod(self, name: str, node: str, words: Json) -> Pod:
        asks = pod_asks({**words, "cpu": f"{_milli(words['has'])}m", "memory": words.get("memory", "0")}, "0")
        built = builders.pod(
            name,
            namespace="team",
            creation_timestamp=timestamp(after(-3_600)),
            deletion_timestamp=timestamp(after(20)) if words.get("leaving") else "",
            deletion_grace_period_seconds=30 if words.get("leaving") else None,
            labels={"app": _app(name, words)},
            annotations=msgspec.structs.replace(annotations(words), elastic="" if "plain" in words else "cpu=1..9"),
            owner_references=owner(_app(name, words), words),
            node_name="" if words.get("moved") else node,
            phase=words.get("phase", "Running"),
            start_time=timestamp(after(-3_600)),
            scheduler_name=names.GPU_SCHEDULER,
            conditions=(Condition("Ready", "True"),),
            **asks,
        )
        if words.get("static"):
            own = msgspec.structs.replace(built.metadata, owner_references=builders.controlled_by("Node", node))
            built = msgspec.structs.replace(built, metadata=own)
        return built

    def _state(self) -> PressureState:
        loads = {f"uid-{name}": int(words["load"] * 1_000) for name, words in self._said.items() if "load" in words}
        nodes = (
            NodePods(name, self._bounds(said), tuple(sorted(self._entries(said), key=lambda each: each.uid)))
            for name, said in sorted(self._nodes.items())
            if not said.get("without")
        )
        return PressureState(tuple(nodes), loads)

    def _bounds(self, said: Json) -> dict[str, Bounds]:
        watermark = Percent.parse(self._policy.get("watermark", "80%")).basis_points
        found = {"cpu": Bounds(_milli(said.get("cpu", 10)), _milli(said.get("system", 0)), watermark)}
        if "memory" in self._case:
            found["memory"] = Bounds(self._case["memory"], 0, watermark)
        return found

    def _entries(self, said: Json) -> Iterator[LedgerPod]:
        for name, words in _pods(said):
            has = {"cpu": _milli(words["has"])}
            if "memory" in self._case:
                has["memory"] = int(words.get("memory", "0"))
            if "plain" in words:
                yield PlainPod(f"uid-{name}", f"team/{name}", has)
                continue
            most = {key: max(amount, _milli(words.get("most", 9))) for key, amount in has.items()}
            lacks = {key: _milli(words.get("lacks", 0)) if key == "cpu" else 0 for key in has}
            silent = bool(words.get("silent"))
            yield ElasticPod(f"uid-{name}", f"team/{name}", has, most, has, has, lacks, is_silent=silent)

    def _budgets(self) -> Iterator[PodDisruptionBudget]:
        for app, allowed in self._case.get("budgets", {}).items():
            spec = BudgetSpec(selector=LabelSelector({"app": app}))
            status = BudgetStatus(allowed, 1, 1, observed_generation=1)
            yield PodDisruptionBudget(Metadata(app, "team", generation=1), spec, status)

    def _memory(self) -> MigrationMemory:
        case = self._case
        migrations = (
            Migration(
                f"uid-{pod}",
                f"team/{pod}",
                words.get("from", "a"),
                POOL,
                words["to"],
                after(-words.get("since", 10)),
                {"cpu": _milli(words.get("needs", 1))},
                after(-words["evicted"]) if "evicted" in words else None,
                after(-words["gone"]) if "gone" in words else None,
            )
            for pod, words in case.get("migrations", {}).items()
        )
        failed = (
            FailedMigration(f"uid-{pod}", f"team/{pod}", after(-words["at"]), words.get("times", 1))
            for pod, words in case.get("failed", {}).items()
        )
        return memory_of(migrations, failed)


def _pods(said: Json) -> list[tuple[str, Json]]:
    return list(said.get("pods", {}).items())


def _app(name: str, words: Json) -> str:
    return str(words.get("app", name))


def _milli(cpus: float) -> int:
    return round(cpus * 1_000)


def _declared(kind: str, name: str, body: Json, of: Any) -> Declared[Any]:
    body = {key: value for key, value in body.items() if key != "watermark"}
    return Declared(kind, name, convert(body, of), (("", POLICY),))


def _pool(case: Json) -> Json:
    return {
        "mode": "Enforce",
        "devices": {"model": "a100", "count": 8, "memory": "40Gi"},
        "instanceTypes": [{"name": "p4d.24xlarge"}],
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"},
        **case.get("pool", {}),
    }


def migrations_after(made: Plan) -> dict[str, str]:
    """The destination of each migration in progress after the plan, by the name of the pod."""
    section = made.memory.section(PLANNER, MigrationMemory)
    return {each.pod.removeprefix("team/"): each.destination for each in section.migrations}
