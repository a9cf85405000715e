"""A Scenario: policies over time, a cluster, what runs on it, what goes wrong, and what is expected of it all."""

from typing import Annotated

import msgspec

from reconciler.model.fields import MergeKey, Says, Shaped, Within
from reconciler.model.quantity import Duration
from reconciler.simulate.scenario.cluster import InitialCluster, ScenarioMarket
from reconciler.simulate.scenario.edit import ScenarioEdit
from reconciler.simulate.scenario.expectation import Expectation
from reconciler.simulate.scenario.fault import ScenarioFault
from reconciler.simulate.scenario.revision import ScenarioRevision
from reconciler.simulate.scenario.workload import ScenarioWorkload

_TIME = Shaped(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$", 'a time such as "2026-11-16T08:00:00Z"')


class Scenario(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A story to be simulated: what is wished for, what there is, what comes, and what is expected."""

    description: Annotated[str, Says("What the story is about, in a sentence or two."), Within(most=2000)] = ""
    start: Annotated[str, Says("When it begins; all other times are counted from here."), _TIME] = (
        "2026-11-16T08:00:00Z"
    )
    duration: Annotated[Duration, Says("How long it lasts.")]
    warm_up: Annotated[
        Duration,
        Says("So long it all goes on before, with no controller there; what always runs from the beginning runs then."),
    ] = Duration(0)
    seed: Annotated[int, Says("From which all chance follows."), Within(0, 2**53)] = 1
    cycle_every: Annotated[Duration, Says("How far apart cycles of the controller are at least.")] = Duration(1_000)
    environment: Annotated[
        str | None, Says("Environment of the policies: base, or the name of an overlay."), Within(1, 253)
    ] = None
    policies: Annotated[list[ScenarioRevision], Says("The policies, and what becomes of them."), Within(1, 100)]
    cluster: Annotated[InitialCluster, Says("What there is at first.")] = InitialCluster()
    market: Annotated[ScenarioMarket, Says("What Karpenter can buy, and how long that takes.")] = ScenarioMarket()
    workloads: Annotated[list[ScenarioWorkload], Says("What runs."), Within(most=1_000), MergeKey(("name",))] = (
        msgspec.field(default_factory=list)
    )
    faults: Annotated[list[ScenarioFault], Says("What goes wrong."), Within(most=1_000)] = msgspec.field(
        default_factory=list
    )
    edits: Annotated[list[ScenarioEdit], Says("What people and other tools do to objects."), Within(most=1_000)] = (
        msgspec.field(default_factory=list)
    )
    expect: Annotated[
        list[Expectation], Says("What must come of it; where it does not, the simulation fails."), Within(most=100)
    ] = msgspec.field(default_factory=list)
