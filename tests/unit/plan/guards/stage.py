"""A fleet, guards and hand-made decisions, as tests/cases/guards/*.yaml describe them; see the top of each."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Condition, Metadata, Namespace
from reconciler.model.cluster.node import Node, NodeClaim, NodeTaint
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.consequence import Consequence, Share, summed
from reconciler.model.plan.decision import Action, Apply, Decision, Delete, Evict, Preconditions, Reason, Ref, Taint
from reconciler.model.plan.guard_verdict import DisruptionRecord
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Memory
from reconciler.model.plan.plan import Plan
from reconciler.model.policy.guards import ChangeGuard
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.model.problem import Origin
from reconciler.plan.check import check
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.guards.approvals import policy_digest
from reconciler.plan.manifests.reasons import Missing
from reconciler.plan.planner import plan
from tests import builders, folders
from tests.unit.plan.manifests.stage import POLICY, pool

FOLDER = folders.CASES / "guards"
NOW = Instant(1_793_000_000_000)
MINUTE_MS = 60_000
GPUS = 8
SCALED = {"minSize": 1, "maxSize": 200, "minGPUUtilizationPercent": 70}
REVISION = "4c1f9e2b7d0a155f1e2d3c4b5a69788796a5b4c3"

Json = dict[str, Any]


def table(name: str) -> dict[str, Json]:
    found: dict[str, Json] = yaml.safe_load((FOLDER / name).read_text())
    return found


def numbers(text: str) -> list[int]:
    """6-8, 11 -> 6, 7, 8, 11."""
    found: list[int] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def guard(name: str, said: Json) -> Declared[ChangeGuard]:
    spec = msgspec.convert({"poolNames": ["*"], **said}, ChangeGuard)
    places = {"": POLICY}
    paths = [f"spec.{period}.{field}" for period in ("perPlan", "perHour") for field in said.get(period, {})]
    for at, path in enumerate(paths):
        places[path] = Origin("policies/prod.yaml", 17 + at, REVISION)
    return Declared("ChangeGuard", name, spec, tuple(places.items()))


def approval(name: str, said: Json, desired: Desired) -> Unstructured:
    """`objects` are titles of policies and their digests: `now` is that of the policy as the case declares it."""
    ends = timestamp(Instant(NOW + said.pop("minutes", 60) * MINUTE_MS))
    spec = {"guardName": "fleet", "ceilings": {}, "expires": ends, **said}
    if not {"revision", "objects", "prune"} & set(said):
        spec["revision"] = REVISION
    if "objects" in said:
        spec["objects"] = []
        for title, digest in said["objects"].items():
            kind, object_name = title.split("/")
            found = policy_digest(desired, kind, object_name) if digest == "now" else f"sha256:{digest * 64}"
            spec["objects"].append({"kind": kind, "name": object_name, "digest": found})
    return Unstructured("gpu.scheduling/v1", "ChangeApproval", UnstructuredMetadata(name), {"spec": spec})


def freezing(said: Json) -> dict[str, str]:
    """What `frozen` says, as annotations."""
    return _timed({f"gpu.scheduling/frozen-{key}": value for key, value in said.get("frozen", {}).items()})


def _timed(annotations: dict[str, str]) -> dict[str, str]:
    """`in 60` is in an hour."""
    return {
        key: timestamp(Instant(NOW + int(value[3:]) * MINUTE_MS)) if value.startswith("in ") else value
        for key, value in annotations.items()
    }


class World:
    """What a case describes. Node 3 of pool a100 is a100-3; the first `busy` have a pod each, with all their GPUs."""

    def __init__(self, case: Json) -> None:
        self._case = case
        self.now = Instant(NOW + case.get("minutes_later", 0) * MINUTE_MS)
        self.inputs = Inputs(self._desired(), self._observed(), self.now, Memory(tuple(self._marks())))
        self.fleet = Fleet(self.inputs.observed)

    def planned(self) -> Plan:
        """What comes of what the case does; no invariant is broken by it."""

        def by_hand(inputs: Inputs, draft: Draft) -> Verdict:
            return self.verdict()

        made = plan(self.inputs, self.fleet, (by_hand,))
        check(self.inputs, self.fleet, made)
        return made

    def verdict(self) -> Verdict:
        decisions: list[Decision] = []
        consequences: list[Consequence] = []
        for text in self._case.get("does", []):
            verb, rest = text.split(" ", 1)
            if verb in {"edit", "prune"}:
                decision, brought = self._edit(verb, rest)
                decisions.append(decision)
                consequences += brought
            else:
                decisions += self._each(verb, rest)
        return Verdict(tuple(decisions), tuple(consequences))

    def _desired(self) -> Desired:
        pools = self._case.get("pools", {})
        declared = tuple(
            pool(name, {key: said[key] for key in ("mode", "suspend") if key in said})
            for name, said in sorted(pools.items())
            if not said.get("undeclared")
        )
        guards = tuple(guard(*each) for each in sorted(self._case.get("guards", {}).items()))
        provisioners = tuple(
            Declared("NodeProvisioner", name, _scaling(name), (("", POLICY),))
            for name, said in sorted(pools.items())
            if said.get("scaled")
        )
        revision = self._case.get("revision", REVISION)
        return Desired(revision, "prod", pools=declared, provisioners=provisioners, guards=guards)

    def _observed(self) -> Observed:
        case = self._case
        approvals = [approval(name, dict(said), self._desired()) for name, said in case.get("approvals", {}).items()]
        nodes, pods, claims = [], [], []
        for name, said in case.get("pools", {}).items():
            gone = numbers(str(said.get("gone", "")))
            for at in (each for each in range(said.get("nodes", 0)) if each not in gone):
                nodes.append(self._node(name, said, at))
                claims.append(self._claim(name, said, at))
                if at < said.get("busy", 0):
                    pods.append(_pod(f"{name}-{at}", self._case.get("labels", {})))
        frozen = msgspec.convert(freezing(case), Annotations)
        namespace = Metadata(names.OWN_NAMESPACE, annotations=frozen)
        unread = dict.fromkeys(case.get("unread", []), "timed out")
        empty: Json = {"nodes": nodes, "pods": pods, "nodeclaims.karpenter.sh": claims}
        read = {kind: () if kind in unread else tuple(found) for kind, found in empty.items()}
        return Observed(
            nodes=read["nodes"],
            pods=read["pods"],
            node_claims=read["nodeclaims.karpenter.sh"],
            node_pools=tuple(_node_pool(*each) for each in case.get("pools", {}).items()),
            policies=(*approvals, *(_policy(*each) for each in case.get("policies", {}).items())),
            namespaces=(Namespace(namespace),),
            unread=tuple(Unread(*each) for each in unread.items()),
        )

    def _node(self, name: str, said: Json, at: int) -> Node:
        signs = {sign: at in numbers(str(said.get(sign, ""))) for sign in ("deletion-time", "draining", "disrupted")}
        keys = {"deletion-time": names.DELETION_TIME, "draining": names.DRAINING, "disrupted": names.DISRUPTED}
        came = said.get("came", {})
        taints = tuple(NodeTaint(keys[sign], "NoSchedule", "1") for sign, is_there in signs.items() if is_there)
        return builders.node(
            f"{name}-{at}",
            gpus=GPUS,
            has={"pods": "110"},
            resource_version="1",
            creation_timestamp=timestamp(Instant(NOW - said["came"][at] * MINUTE_MS)) if at in came else "",
            labels={names.KARPENTER_POOL: name},
            deletion_timestamp=self._deleted(said, at),
            annotations=msgspec.convert(_timed(said.get("annotations", {}).get(at, {})), Annotations),
            taints=taints,
        )

    def _claim(self, name: str, said: Json, at: int) -> NodeClaim:
        drifted = at in numbers(str(said.get("drifted", "")))
        return builders.claim(
            f"claim-{name}-{at}",
            labels={names.KARPENTER_POOL: name},
            deletion_timestamp=self._deleted(said, at),
            node_name=f"{name}-{at}",
            conditions=(Condition("Drifted", "True", "NodePoolDrifted"),) if drifted else (),
        )

    def _deleted(self, said: Json, at: int) -> str:
        for minutes, who in said.get("deleted", {}).items():
            if at in numbers(str(who)):
                return timestamp(Instant(NOW - minutes * MINUTE_MS))
        return ""

    def _marks(self) -> Iterator[DisruptionRecord]:
        for said in self._case.get("before", []):
            name = said["pool"]
            for at in numbers(str(said["nodes"])):
                yield DisruptionRecord(
                    Instant(NOW - said.get("minutes", 0) * MINUTE_MS),
                    "Node",
                    f"{name}-{at}",
                    f"uid-{name}-{at}",
                    f"uid-claim-{name}-{at}",
                    name,
                    goes=not said.get("gpus", 0),
                    gpus=said.get("gpus", 0),
                    approvals=tuple(said.get("approvals", ())),
                    own=said.get("own", True),
                )

    def _each(self, verb: str, rest: str) -> Iterator[Decision]:
        """scale-down a100 6-7, drain a100 3 by drain."""
        rest, _, planner = rest.partition(" by ")
        name, which = rest.split(" ", 1)
        for at in numbers(which):
            node = Ref("Node", "", f"{name}-{at}", f"uid-{name}-{at}")
            pod = Ref("Pod", "research", f"train-{name}-{at}", f"uid-train-{name}-{at}")
            subject = pod if verb == "evict" else node
            yield Decision(planner or "hand", subject, _act(verb), _why(subject), name)

    def _edit(self, verb: str, rest: str) -> tuple[Decision, list[Consequence]]:
        """edit a100 removed 6-9; replaced 0-2."""
        name, _, fates = rest.partition(" ")
        act: Action = Delete(presumes=Preconditions(resource_version="7"))
        if verb == "edit":
            manifest = msgspec.json.encode(
                {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}}
            )
            act = Apply(manifest=manifest.decode(), presumes=Preconditions(resource_version="7"))
        brought = []
        for fate, which in re.findall(r"(\w+) ([\d, -]+)", fates):
            like = Consequence(name, name, "change", fate, (), 0, 0, 0, 0)
            brought.append(summed(like, [(f"{name}-{at}", self._share(name, at)) for at in numbers(which)]))
        subject = Ref("NodePool", "", name, f"uid-{name}")
        return Decision("manifests" if verb == "prune" else "hand", subject, act, _why(subject), name), brought

    def _share(self, name: str, at: int) -> Share:
        used = GPUS if at < self._case["pools"][name].get("busy", 0) else 0
        return Share(GPUS, used, used // GPUS, 0, 0, ())


def _scaling(pool_name: str) -> NodeProvisioner:
    return msgspec.convert({**SCALED, "poolName": pool_name}, NodeProvisioner)


def _why(subject: Ref) -> Reason:
    return Reason(Missing(object=subject), POLICY)


def _act(verb: str) -> Action:
    match verb:
        case "scale-down":
            return Taint(key=names.DELETION_TIME, value=str(NOW // 1_000), effect="PreferNoSchedule")
        case "untaint":
            return Taint(key=names.DELETION_TIME, value=None, effect="PreferNoSchedule")
        case "drain":
            return Taint(key=names.DRAINING, value=str(NOW // 1_000), effect="NoSchedule")
        case "throw-out":
            return Taint(key="example.com/out", value="1", effect="NoExecute")
        case "candidate":
            return Taint(key=names.DRAIN_CANDIDATE, value=str(NOW // 1_000), effect="PreferNoSchedule")
        case "evict":
            return Evict(grace_seconds=30)
        case "delete":
            return Delete()
    raise ValueError(verb)


def _pod(node: str, labels: dict[str, str]) -> Pod:
    return builders.pod(f"train-{node}", gpus=GPUS, namespace="research", labels=labels, node_name=node)


def _node_pool(name: str, said: Json) -> Unstructured:
    frozen = freezing(said)
    labels = {names.MANAGED: "true", names.POOL: name}
    return Unstructured(
        "karpenter.sh/v1", "NodePool", UnstructuredMetadata(name, labels=labels, annotations=frozen, uid=f"uid-{name}")
    )


def _policy(title: str, said: Json) -> Unstructured:
    kind, name = title.split("/")
    frozen = freezing(said)
    return Unstructured(
        "gpu.scheduling/v1", kind, UnstructuredMetadata(name, annotations=frozen), {"spec": said.get("spec", {})}
    )
