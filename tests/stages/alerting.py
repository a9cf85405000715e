"""Which alerts of deploy/alerts fire while a scenario is played: scraped and evaluated as Prometheus would do."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.model.plan.inputs import CycleResult
from reconciler.serve.metrics import Metrics
from reconciler.simulate.runner.run import RunOptions, run
from tests.lab.places import REPOSITORY
from tests.stages.promql import Labels, evaluate

ALERTS = REPOSITORY / "deploy" / "alerts"
EVERY_SECONDS = 60  # scrapes and evaluations


def rules() -> list[dict[str, Any]]:
    """The rules as they are shipped."""
    built = yaml.safe_load((ALERTS / "kustomization.yaml").read_text())
    found = [yaml.safe_load((ALERTS / each).read_text()) for each in built["resources"]]
    return [rule for each in found for group in each["spec"]["groups"] for rule in group["rules"]]


def fired(scenario: Path) -> dict[str, float]:
    """Each alert that fires, and how many seconds after the start it first does."""
    (play,) = prepared(SimulationRequest(scenario)).plays
    scraped = _Scraped()
    run(play, RunOptions(publishers=(scraped,)))
    scraped.scrape_until(play.end / 1000)
    start, end = play.start / 1000, play.end / 1000
    found = {}
    for rule in rules():
        since: float | None = None
        at = start
        while at <= end:
            since = (since if since is not None else at) if evaluate(rule["expr"], scraped.series, at) else None
            if since is not None and at - since >= _seconds(rule["for"]):
                found[rule["alert"]] = at - start
                break
            at += EVERY_SECONDS
    return found


class _Scraped:
    """Owner of the samples of a replica that leads; told of each cycle."""

    def __init__(self) -> None:
        self.series: dict[tuple[str, Labels], list[tuple[float, float]]] = defaultdict(list)
        self._metrics = Metrics()
        self._metrics.lead(True)
        self._due: float | None = None
        self._named = {name for rule in rules() for name in re.findall(r"\breconciler_\w+", rule["expr"])}

    def publish(self, cycled: CycleResult) -> None:
        self.scrape_until(cycled.at / 1000)
        self._metrics.publish(cycled)

    def scrape_until(self, until: float) -> None:
        """What stands between two cycles is scraped as often as it would be."""
        self._due = until if self._due is None else self._due
        samples = self._samples() if self._due < until else []
        while self._due < until:
            for key, value in samples:
                self.series[key].append((self._due, value))
            self._due += EVERY_SECONDS

    def _samples(self) -> list[tuple[tuple[str, Labels], float]]:
        return [
            ((sample.name, frozenset({**sample.labels, "instance": "reconciler-0"}.items())), sample.value)
            for family in self._metrics.registry.collect()
            for sample in family.samples
            if sample.name in self._named
        ]


def _seconds(text: str) -> float:
    return float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]
