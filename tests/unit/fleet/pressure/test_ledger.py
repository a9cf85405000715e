"""The ledger of a node: golden table, and what holds after any sequence of changes."""

from typing import Any

import msgspec
import pytest
import yaml

from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.model.plan.pressure import Bounds, ElasticPod, PlainPod
from reconciler.model.quantity import Percent
from tests import folders

CASES: dict[str, Any] = yaml.safe_load((folders.CASES / "pressure" / "ledger.yaml").read_text())
NODE = {"total": 100, "system": 10, "watermark": "80%"}
CPU = "cpu"


def bounds_of(said: dict[str, Any]) -> Bounds:
    watermark = Percent.parse(said["watermark"]).basis_points
    return Bounds(said["total"], said["system"], watermark, said.get("slot", 1))


def elastic(name: str, has: int, least: int = 1, most: int = 60, silent: bool = False) -> ElasticPod:
    return ElasticPod(
        name, f"team/{name}", {CPU: least}, {CPU: most}, {CPU: has}, permitted={CPU: has}, is_silent=silent
    )


class Play:
    """A ledger and the steps of a case."""

    def __init__(self, node: dict[str, Any]) -> None:
        self.node = NODE | node
        self.ledger = NodeLedger({CPU: bounds_of(self.node)})

    def pod(self, name: str) -> ElasticPod:
        found = self.ledger.get(name)
        assert isinstance(found, ElasticPod)
        return found

    def step(self, step: dict[str, Any]) -> None:
        word = next(iter(step))
        getattr(self, f"_{word}")(step[word], step)

    def _add(self, said: dict[str, Any], _: Any) -> None:
        for name, words in said.items():
            self.ledger.put(elastic(name, **words))

    def _plain(self, said: dict[str, int], _: Any) -> None:
        for name, requests in said.items():
            self.ledger.put(PlainPod(name, f"team/{name}", {CPU: requests}))

    def _ask(self, said: dict[str, int], step: dict[str, Any]) -> None:
        believed = {CPU: step["believed"]} if "believed" in step else None
        for name, amount in said.items():
            assert self.ledger.grant(self.pod(name), {CPU: amount}, believed).permitted[CPU] == step["permit"]

    def _sees(self, said: dict[str, int], _: Any) -> None:
        for name, has in said.items():
            self.ledger.put(msgspec.structs.replace(self.pod(name), has={CPU: has}))

    def _drop(self, name: str, _: Any) -> None:
        self.ledger.drop(name)

    def _migrate(self, name: str, _: Any) -> None:
        self.ledger.migrate(name, is_migrating=True)

    def _settle(self, name: str, _: Any) -> None:
        self.ledger.migrate(name, is_migrating=False)

    def _node(self, said: dict[str, Any], _: Any) -> None:
        self.node |= said
        self.ledger.set_bounds({CPU: bounds_of(self.node)})

    def figures(self) -> dict[str, Any]:
        pressure, bounds = self.ledger.pressure(CPU), self.ledger.bounds[CPU]
        return {
            **pressure._asdict(),
            "left": pressure.left,
            "room": self.ledger.room(CPU),
            "watermark": bounds.watermark,
        }

    def fits(self, said: dict[str, int]) -> set[bool]:
        return {self.ledger.fits({CPU: amount}, is_elastic=kind == "elastic") for kind, amount in said.items()}


@pytest.mark.parametrize("name", CASES)
def test_the_figures_of_a_node(name: str) -> None:
    case = CASES[name]
    play = Play(case.get("node", {}))
    for step in case.get("steps", ()):
        play.step(step)
    expected = dict(case["then"])
    fits, lacks = expected.pop("fits", None), expected.pop("lacks", None)
    found = play.figures()
    assert {key: found[key] for key in expected} == expected
    assert fits is None or play.fits(fits) == {True}
    assert lacks is None or play.fits(lacks) == {False}


def test_resources_are_independent() -> None:
    ledger = NodeLedger({CPU: Bounds(100), "memory": Bounds(50)})
    both = {CPU: 10, "memory": 10}
    ledger.put(ElasticPod("a", "team/a", {CPU: 1, "memory": 1}, {CPU: 200, "memory": 200}, both, permitted=both))
    pod = ledger.get("a")
    assert isinstance(pod, ElasticPod)
    assert ledger.grant(pod, {CPU: 90, "memory": 90}).permitted == {CPU: 90, "memory": 50}
    assert (ledger.pressure(CPU).capacity, ledger.pressure("memory").capacity) == (0, 40)


def test_a_resource_that_no_policy_bounds_keeps_its_permit() -> None:
    ledger = NodeLedger({CPU: Bounds(100)})
    has = {CPU: 10, "memory": 10}
    ledger.put(ElasticPod("a", "team/a", has, has, has, permitted=has))
    pod = ledger.get("a")
    assert isinstance(pod, ElasticPod)
    assert ledger.grant(pod, {"memory": 20}).permitted == has
