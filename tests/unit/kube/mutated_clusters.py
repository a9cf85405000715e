"""One field of one object of a cluster, mutated: what an API server would print then, and all that is made of it.

A base is a cluster that is drawn by a seed, with an object of every kind as API servers print them. Fields are those of
the structs that are read and those that the objects have; what is written into one is of a wrong type, of a wrong
length, or at an end of what can be said.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from random import Random
from typing import Any, cast

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.kube.decode import page
from reconciler.kube.placeholders import each_once, parted
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.refusal import ANY_POOL, SetAside
from reconciler.model.plan.decision import Annotate, Decision, Hold, Label, Ref, Taint, Ungate
from reconciler.model.plan.inputs import CycleResult, Inputs, Succession, successor
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import check
from reconciler.plan.files import dump, saved_plan
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.planner import plan
from reconciler.plan.status.conditions import StatusContext
from reconciler.policy.resolve import bundle_of
from reconciler.report.applied import lines
from reconciler.report.conditions import received, statuses
from reconciler.report.explain.about import UnknownSubject
from reconciler.report.explain.subject import about, parse_subject
from reconciler.report.formats import ci, text
from reconciler.report.header import ReportHeader
from reconciler.report.plans.build import planned_of
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.status.overview import overview_document, overview_of
from reconciler.serve.metrics import Metrics
from tests.unit.kube.mutations import DEEP, GONE, Json, Path, drawn_value, own_paths, paths_of, put
from tests.unit.kube.real_objects import OBJECTS, TIME
from tests.unit.plan.drawn_fleets import Drawn

Cluster = dict[str, list[Json]]  # by the field of Observed and the kind: objects as JSON


class Mutated(msgspec.Struct, frozen=True):
    """A cluster of which one field is another; where, and what is there."""

    inputs: Inputs
    kind: str
    name: tuple[str, str]
    path: Path
    value: str

    @property
    def told(self) -> str:
        return f"{self.kind}/{'/'.join(self.name)} {'.'.join(map(str, self.path))} = {self.value[:80]}"


class Seeded:
    """Owner of one cluster and its plan."""

    def __init__(self, seed: int) -> None:
        drawn = Drawn(seed).inputs()
        self.cluster = _as_json(drawn.observed)
        self._pages = {each: _listed(each, self.cluster[_key(each)]) for each in RESOURCE_KINDS}
        self._items = {each: page(each, raw).items for each, raw in self._pages.items()}
        self.drawn = drawn
        self.inputs = self._inputs({})
        self.plan = plan(self.inputs, Fleet(self.inputs.observed))

    def mutated(self, chance: Random) -> Mutated:
        """With one field that is drawn by chance."""
        seen = chance.choice(
            [
                each
                for each in RESOURCE_KINDS
                if self.cluster[_key(each)] and not (each.kind == "Pod" and each.field == "kept")
            ]
        )
        objects = self.cluster[_key(seen)]
        at = chance.randrange(len(objects))
        found = json.loads(json.dumps(objects[at]))
        name = _name(found)
        path = chance.choice([*own_paths(found), *paths_of(cast("Any", seen.type))])
        value = drawn_value(chance)
        put(found, path, value)
        mutated = [*objects[:at], found, *objects[at + 1 :]]
        items = {}
        for each in RESOURCE_KINDS:
            if _key(each) == _key(seen) and each.kind == seen.kind:
                items[each] = page(each, _listed(each, mutated)).items
        shown = "(left out)" if value is GONE else json.dumps(value)
        return Mutated(self._inputs(items), seen.kind, name, path, shown)

    def plan_without(self, aside: Iterable[SetAside]) -> Plan:
        """Of the cluster without these objects, and without the nodes that they are on."""
        gone = {(each.kind, each.namespace, each.name) for each in aside}
        gone |= {("Node", "", each.node) for each in aside if each.node}
        items = {}
        for each in RESOURCE_KINDS:
            kept = [one for one in self.cluster[_key(each)] if (each.kind, *_name(one)) not in gone]
            items[each] = page(each, _listed(each, kept)).items
        inputs = self._inputs(items)
        return plan(inputs, Fleet(inputs.observed))

    def _inputs(self, other: dict[ResourceKind, tuple[Any, ...]]) -> Inputs:
        fields: dict[str, Any] = {}
        aside: list[Any] = []
        for each in RESOURCE_KINDS:
            objects, refused = parted(other.get(each, self._items[each]))
            fields[each.field] = fields.get(each.field, ()) + objects
            aside += refused
        observed = self.drawn.observed
        observed = Observed(observed.cluster_uid, unread=observed.unread, set_aside=each_once(aside), **fields)
        return msgspec.structs.replace(self.drawn, observed=observed)


FAULT = "because of a bug in reconciler:"  # contained, and told


@cache
def base(seed: int) -> Seeded:
    return Seeded(seed)


def everything(inputs: Inputs, kind: str, name: tuple[str, str]) -> Plan:
    """All that is ever made of a cluster: raises what any of it raises."""
    fleet = Fleet(inputs.observed)
    made = plan(inputs, fleet)
    check(inputs, fleet, made)
    scene = PlanningResult(inputs, fleet, made)
    setting = ReportHeader("prod", "4c1f9e2", "lab", "", inputs.now, inputs.now, "1")
    for document in (plan_document(planned_of(setting, scene, None)), overview_document(overview_of(setting, scene))):
        assert FAULT not in text.write(document, color=False)
        ci.write_json(document)
    for subject in _subjects(kind, name):
        try:
            assert FAULT not in about(scene, parse_subject(subject)).outcome
        except UnknownSubject:
            continue
    cycled = CycleResult(inputs.now, inputs, made)
    Metrics().publish(cycled)
    for line in lines(None, cycled):
        line.as_json(inputs.now)
    for are_resources in (False, True):
        statuses(inputs, made, StatusContext(are_resources=are_resources))
    received(inputs.observed, inputs.now)
    bundle_of(inputs.observed)
    again = dump.read(dump.write(inputs))
    assert again.observed.set_aside == tuple(sorted(inputs.observed.set_aside))
    saved_plan.write(scene, inputs.now)
    told = msgspec.json.decode(msgspec.json.encode(successor(None, inputs)), type=type(successor(None, inputs)))
    Succession().take(told)
    msgspec.json.encode(made)
    return made


def differences(before: Seeded, mutated: Mutated, made: Plan) -> list[str]:
    """What of the plan differs otherwise than by objects that are set aside and by holds. Where no more is set aside
    than before, the mutation was understood, and anything may follow from it."""
    aside = set(mutated.inputs.observed.set_aside) - set(before.inputs.observed.set_aside)
    if not aside:
        return []
    acted, acts = _acts(before.plan), _acts(made)
    holds = [each for each in made.decisions if isinstance(each.act, Hold)]
    held = {each.subject.title for each in holds}
    held_pools = {each.pool for each in holds if each not in before.plan.decisions}
    pools = _pools_of(aside, before, mutated)
    # An object that is left alone has others take its turn, as many.
    left = Counter((*_kin(acted[key]), key[2]) for key in acted.keys() - acts.keys())
    # A guard takes a busy node that goes for one that is replaced, and what is set aside is busy: the hour has room.
    awaits_hour = {each.subject for each in before.plan.decisions if each.reason.code == "HourIsFull"}
    gained = acts.keys() - acted.keys()
    nodes = {each.name for each in aside if each.kind == "Node"}
    fresh = {key: acts[key] for key in gained if not _is_harmless(acts[key], nodes) and key[1] not in awaits_hour}
    new = Counter((*_kin(each), key[2]) for key, each in fresh.items()) - left
    if new and mutated.kind in _WITHOUT:
        new -= Counter((*_kin(each), key[2]) for key, each in _acts(before.plan_without(aside)).items())
    found = [f"{planner} acts anew for {pool}: {verb}" for planner, pool, verb in new]
    for key, decision in acted.items():
        others = [other for other, each in fresh.items() if _kin(each) == _kin(decision) and other[2] == key[2]]
        is_held = decision.subject.title in held or decision.pool in held_pools
        is_explained = key in acts or is_held or not pools or decision.pool in pools or others
        if not is_explained:
            found.append(f"{key[0]} no longer acts on {decision.subject.title} of {decision.pool}")
    return found


# A pod that waits asks for nothing while it is set aside; a node, and that of a pod, has no room: so what would be done
# without them is allowed.
_WITHOUT = frozenset({"Pod", "Node"})


def _is_harmless(decision: Decision, nodes: Collection[str]) -> bool:
    """It takes a mark off or says something; or has a pod take the place that was kept for those of such a node."""
    act = decision.act
    if isinstance(act, Ungate) and nodes:
        return act.node not in nodes
    return isinstance(act, Annotate | Label) or (isinstance(act, Taint) and act.value is None)


def _name(found: Json) -> tuple[str, str]:
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]


def _kin(decision: Decision) -> tuple[str, str]:
    return decision.planner, decision.pool


def _acts(made: Plan) -> dict[tuple[str, Ref, str], Decision]:
    acting = [each for each in made.decisions if not isinstance(each.act, Hold) and not each.would]
    return {
        (each.planner, each.subject, f"{type(each.act).__name__} {getattr(each.act, 'key', '')}"): each
        for each in acting
    }


def _pools_of(aside: set[SetAside], before: Seeded, mutated: Mutated) -> set[str]:
    """The pools that the objects have a part in; none where that may be any."""
    found = set()
    nodes = {each.name: each.pool for inputs in (before.inputs, mutated.inputs) for each in inputs.observed.nodes}
    for each in aside:
        if each.pool == ANY_POOL or not (each.pool or each.node in nodes):
            return set()
        found.add(each.pool or nodes[each.node])
    return found


def _subjects(kind: str, name: tuple[str, str]) -> Iterator[str]:
    namespace, own = name
    yield f"pod/{namespace}/{own}" if kind == "Pod" else f"{kind}/{own}"
    words = {
        "Node": "node",
        "NodeClaim": "claim",
        "NodePool": "pool",
        "GpuPool": "pool",
        "NodeProvisioner": "provisioner",
    }
    if kind in words:
        yield f"{words[kind]}/{own}"


def _key(seen: ResourceKind) -> str:
    return f"{seen.field} {seen.kind}"


def _listed(seen: ResourceKind, objects: list[Json]) -> bytes:
    raw = json.dumps(
        {"kind": f"{seen.kind}List", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": objects},
        ensure_ascii=False,
    )
    for mark, texts in DEEP.items():
        for number, deep in enumerate(texts):
            raw = raw.replace(f'"{mark}{number}"', deep)
    return raw.encode(errors="replace")


def _as_json(observed: Observed) -> Cluster:
    """As the API server would print it, with real objects beside those that are drawn."""
    found: Cluster = {}
    for seen in RESOURCE_KINDS:
        drawn = [each for each in getattr(observed, seen.field) if getattr(each, "kind", seen.kind) == seen.kind]
        if seen.field == "kept" and seen.kind != "PriorityClass":
            drawn = []
        objects = [_plain(each) for each in drawn]
        objects += [
            json.loads(json.dumps(each)) for each in OBJECTS if each["kind"] == seen.kind and seen.field != "kept"
        ]
        found[_key(seen)] = [_enriched(each, seen.kind) for each in objects]
    return found


def _enriched(each: Json, kind: str) -> Json:
    """With the fields of what is kept whole, of which no struct tells."""
    if kind in _SPECS:
        each["spec"] = json.loads(json.dumps(_SPECS[kind])) | (each.get("spec") or {})
    if each.get("apiVersion", "").startswith(names.OURS.strip("/")):
        condition = {"type": "Ready", "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": TIME}
        each["status"] = {"conditions": [condition], "observedGeneration": 2, "bundle": "sha256:1"}
        digests = {names.BUNDLE_DIGEST: "sha256:1", names.BUNDLE_NEXT: "GpuPool/b"}
        each["metadata"].setdefault("annotations", {}).update(digests)
    return each


_SPECS: dict[str, Json] = {
    "NodePool": {
        "template": {
            "metadata": {"labels": {"team": "x"}, "annotations": {"note": "y"}},
            "spec": {
                "requirements": [
                    {
                        "key": "node.kubernetes.io/instance-type",
                        "operator": "In",
                        "values": ["p4d.24xlarge"],
                        "minValues": 1,
                    },
                    {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Gt", "values": ["1"]},
                ],
                "taints": [{"key": "gpu", "effect": "NoSchedule", "value": "a", "timeAdded": TIME}],
                "startupTaints": [{"key": "starting", "effect": "NoSchedule"}],
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"},
                "expireAfter": "720h",
                "terminationGracePeriod": "1h",
            },
        },
        "disruption": {
            "budgets": [{"nodes": "10%", "schedule": "@daily", "duration": "10m", "reasons": ["Drifted"]}],
            "consolidateAfter": "1m",
            "consolidationPolicy": "WhenEmpty",
        },
        "limits": {"cpu": "1000", "nvidia.com/gpu": 80},
        "weight": 1,
    },
    "GpuClaim": {
        "devices": {"count": 1, "model": "a100", "memory": "40Gi", "policy": "any"},
        "poolName": "a",
        "gangRef": "g",
    },
    "ChangeApproval": {
        "guardName": "g",
        "objects": [{"kind": "GpuPool", "name": "a", "digest": "sha256:1"}],
        "prune": ["NodePool/old"],
        "expires": "2027-01-01T00:00:00Z",
        "ceilings": {"maxRemovedNodes": 3},
    },
    "GpuPool": {"mode": "Enforce", "devices": {"model": "a100", "count": 8, "memory": "40Gi"}},
}


def _plain(each: Any) -> Json:
    found: Json = msgspec.to_builtins(each)
    found |= found.pop("rest", {})
    return found
