"""Checks names in a scenario against its policies, dump and trace.

A future Karpenter node is named after its NodePool with a number: such names are allowed.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.policy.words import did_you_mean
from reconciler.simulate.bootstrap.nodes import numbered
from reconciler.simulate.runner.play import Play
from reconciler.simulate.scenario.cluster import NodeSet
from reconciler.simulate.scenario.rules import ScenarioProblem
from reconciler.simulate.scenario.spec import ScenarioEdit, ScenarioFault
from reconciler.simulate.world import World

_NO_POOL = "declare the pool, or use another name"


class _Known(msgspec.Struct, frozen=True):
    """Known names, over all plays of a scenario."""

    pools: frozenset[str]
    at_first: frozenset[str]  # pools in the first policies of every play
    machines: frozenset[str]
    zones: frozenset[str]
    nodes: frozenset[str]
    namespaces: frozenset[str]

    def of(self, kind: str) -> frozenset[str]:
        return {"NodePool": self.pools, "Namespace": self.namespaces}.get(kind, self.nodes)


def unknown_names(plays: Sequence[Play]) -> Iterator[ScenarioProblem]:
    """Unknown names with their positions; plays differ only in their policies."""
    known, scenario = _known(plays), plays[0].scenario
    for number, group in enumerate(scenario.cluster.nodes):
        yield from _group(group, f"spec.cluster.nodes[{number}]", known)
    for number, fault in enumerate(scenario.faults):
        yield from _fault(fault, f"spec.faults[{number}]", known)
    for number, edit in enumerate(scenario.edits):
        yield from _edit(edit, f"spec.edits[{number}]", known)
    for number, expectation in enumerate(scenario.expect):
        yield from _named(f"spec.expect[{number}].pool", "pool", expectation.pool, known.pools)


def _group(group: NodeSet, path: str, known: _Known) -> Iterator[ScenarioProblem]:
    if group.pool and group.pool not in known.at_first:
        text = f'the first policies declare no pool "{group.pool}"{did_you_mean(group.pool, known.at_first)}'
        yield f"{path}.pool", "RC301", text, _NO_POOL
    elif group.pool:
        yield from _named(f"{path}.instanceType", "instance type", group.instance_type, known.machines)


def _fault(fault: ScenarioFault, path: str, known: _Known) -> Iterator[ScenarioProblem]:
    yield from _named(f"{path}.pool", "pool", fault.pool, known.pools)
    yield from _named(f"{path}.instanceType", "instance type", fault.instance_type, known.machines)
    yield from _named(f"{path}.zone", "zone", fault.zone, known.zones)


def _edit(edit: ScenarioEdit, path: str, known: _Known) -> Iterator[ScenarioProblem]:
    yield from _named(f"{path}.pool", "pool", edit.pool, known.pools)
    if edit.kind == "PodDisruptionBudget" or (edit.kind in {"Node", "NodeClaim"} and _may_be(edit.name, known.pools)):
        return
    yield from _named(f"{path}.name", edit.kind, edit.name, known.of(edit.kind))


def _may_be(name: str, pools: Iterable[str]) -> bool:
    """Whether Karpenter could use the name for a node."""
    pool, _, number = name.rpartition("-")
    return number.isdigit() and pool in pools


def _named(path: str, what: str, name: str, known: Iterable[str]) -> Iterator[ScenarioProblem]:
    if name and name not in known:
        yield path, "RC301", f'there is no {what} "{name}"{did_you_mean(name, known)}', _NO_POOL


def _known(plays: Sequence[Play]) -> _Known:
    first = plays[0]
    scenario, observed = first.scenario, first.observed or Observed()
    wishes = [each.desired for play in plays for each in play.revisions]
    declared = [each for wish in wishes for each in wish.pools]
    made = [each for wish in wishes for each in wish.manifests]
    sold = scenario.market.machines
    zones = [*scenario.market.zones, *(zone for each in sold for zone in each.zones)]
    live = [each.metadata.labels for each in observed.nodes]
    pools = [*(each.name for each in declared), *(each.name for each in made if each.kind == "NodePool")]
    pools += [each.name for each in observed.node_pools]
    pools += [labels[key] for labels in live for key in (names.KARPENTER_POOL, names.POOL) if key in labels]
    machines = [machine.name for each in declared for machine in each.spec.instance_types]
    machines += [each.name for each in sold] + [each.instance_type for each in observed.nodes]
    return _Known(
        pools=frozenset(pools),
        at_first=frozenset.intersection(*(frozenset(each.name for each in play.first.pools) for play in plays)),
        machines=frozenset(machines),
        zones=frozenset([*zones, *(labels[names.ZONE] for labels in live if names.ZONE in labels)]),
        nodes=frozenset(_nodes(first, observed)),
        namespaces=frozenset([*(each.metadata.name for each in observed.namespaces), *_namespaces()]),
    )


def _nodes(play: Play, observed: Observed) -> Iterator[str]:
    """Nodes and their claims, which mostly have equal names."""
    yield from (each.name for each in observed.nodes)
    yield from (each.name for each in observed.node_claims)
    yield from (each.name for each in play.machines)
    yield from (name for _, name, _ in numbered(play.scenario.cluster.nodes))


def _namespaces() -> list[str]:
    return [each["metadata"]["name"] for each in World().of("Namespace")]
