"""Owner of a few NodePools with nodes, on which edits are foretold, made, and judged by Karpenter itself."""

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from reconciler.kube import decode
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.node import NodeClaim
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.plan.karpenter.drift import Drift, drift_of
from reconciler.plan.karpenter.template_hash import template_hash
from tests.lab import capacity, fleet
from tests.lab.api import Manifest
from tests.lab.lab import Lab
from tests.stages.drift import node_pool_edits as edits
from tests.stages.drift.asking import ask, edit_pool, settled

POOLS, NODES_A_POOL = 5, 4

_BY_KIND = {each.kind: each for each in RESOURCE_KINDS}


@dataclass(frozen=True)
class Outcome:
    """One edit: what was foretold, and what Karpenter said."""

    pool: str
    done: tuple[str, ...]
    spec: Manifest
    foretold: Drift
    marked_before: frozenset[str]
    marked: frozenset[str]
    foretold_hash: str
    written_hash: str

    @property
    def is_partial(self) -> bool:
        """Whether some claims are drifted and others are not."""
        return 0 < len(self.marked) < NODES_A_POOL

    @property
    def agrees(self) -> bool:
        """Whether it came as foretold: who is marked, who no longer is, and the number on the NodePool."""
        return (
            self.foretold.exact
            and {*self.foretold.already, *self.foretold.fresh} == self.marked
            and {*self.foretold.undrifted} == self.marked_before - self.marked
            and {*self.foretold.fresh} == self.marked - self.marked_before
            and self.foretold_hash == self.written_hash
        )


class DriftStage:
    """NodePools whose nodes differ in zone, instance type, capacity type and two labels; nothing is ever replaced."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self.lab, self.admin = lab, lab.admin
        self.chance = random.Random(seed)
        self.first: dict[str, Manifest] = {}

    def __enter__(self) -> Self:
        self.lab.start("scheduler", "kwok", "karpenter")
        self.admin.apply(capacity.node_class(edits.OTHER_CLASS))
        for number in range(POOLS):
            pool = _node_pool(f"pool-{number}")
            self.first[pool["metadata"]["name"]] = pool["spec"]
            self.admin.apply(pool)
        pods = [pod for name in self.first for pod in self._pods(name)]
        self.lab.load(pods)
        for pod in pods:
            self.admin.wait_for("pods", pod["metadata"]["name"], fleet.is_running, "default", within=60)
        assert len(self.admin.list("nodeclaims")) == POOLS * NODES_A_POOL
        return self

    def __exit__(self, *_: object) -> None:
        self.admin.delete("kwoknodeclasses", edits.OTHER_CLASS)

    def edit_each(self) -> list[Outcome]:
        """One round: each NodePool is edited once, and all of its claims are judged."""
        pools = {name: self._pool(name) for name in self.first}
        claims = self._claims()
        before = _marked(claims)
        made = {name: edits.edited(pool.spec, self.first[name], self.chance) for name, pool in pools.items()}
        foretold = {name: drift_of(pools[name], after, claims) for name, (_, after) in made.items()}
        for name, (_, after) in made.items():
            edit_pool(self.admin, name, [{"op": "replace", "path": "/spec", "value": after}])
        written = {name: settled(self.admin, name) for name in made}
        ask(self.admin, [claim.name for claim in claims])
        judged = self._claims()
        after_all = _marked(judged)
        return [
            Outcome(
                name,
                done,
                after,
                foretold[name],
                before & _of(name, claims),
                after_all & _of(name, judged),
                template_hash(after["template"]),
                written[name],
            )
            for name, (done, after) in made.items()
        ]

    def rounds(self, edits_wanted: int) -> Iterator[Outcome]:
        for _ in range(-(-edits_wanted // POOLS)):
            yield from self.edit_each()

    def _pods(self, pool: str) -> list[Manifest]:
        """Each asks for a node of its own kind."""
        kinds = list(itertools.product(edits.TYPES, capacity.ZONES, edits.CAPACITY_TYPES))
        return [
            fleet.Pod(f"{pool}-{number}")
            .with_spec(
                nodeSelector={
                    "karpenter.sh/nodepool": pool,
                    "node.kubernetes.io/instance-type": kind.name,
                    "topology.kubernetes.io/zone": zone,
                    "karpenter.sh/capacity-type": capacity_type,
                    edits.TIER: self.chance.choice(edits.TIERS),
                    edits.GENERATION: self.chance.choice(edits.GENERATIONS),
                }
            )
            .manifest()
            for number, (kind, zone, capacity_type) in enumerate(self.chance.sample(kinds, NODES_A_POOL))
        ]

    def _pool(self, name: str) -> Unstructured:
        found: Unstructured = decode.one(_BY_KIND["NodePool"], json.dumps(self.admin.get("nodepools", name)).encode())
        return found

    def _claims(self) -> list[NodeClaim]:
        seen = _BY_KIND["NodeClaim"]
        return [decode.one(seen, json.dumps(each).encode()) for each in self.admin.list("nodeclaims")]


def _node_pool(name: str) -> Manifest:
    labelled = [
        {"key": edits.TIER, "operator": "In", "values": list(edits.TIERS)},
        {"key": edits.GENERATION, "operator": "In", "values": list(edits.GENERATIONS)},
    ]
    pool = capacity.NodePool(name, edits.TYPES, edits.CAPACITY_TYPES, labels={"team": "research"}).manifest()
    pool["spec"]["template"]["spec"]["requirements"] += labelled
    pool["spec"]["disruption"]["budgets"] = [{"nodes": "0"}]
    return pool


def _marked(claims: list[NodeClaim]) -> frozenset[str]:
    return frozenset(claim.name for claim in claims if claim.says("Drifted"))


def _of(pool: str, claims: list[NodeClaim]) -> frozenset[str]:
    return frozenset(claim.name for claim in claims if claim.metadata.labels[names.KARPENTER_POOL] == pool)
