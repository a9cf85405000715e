"""Runs a play to its end: the real control loop on a simulated cluster.

Keeps no global state: the same play gives the same outcome, byte for byte.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from reconciler.loop.cycle import InProcess
from reconciler.model import names
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.ports import PlanService, Publisher, Wished
from reconciler.report.simulation.simulated import Simulated, TimelineStep
from reconciler.simulate.actors.agents import Agents
from reconciler.simulate.actors.builtin_controllers import Budgets, Collector, TaintEvictionController
from reconciler.simulate.actors.karpenter.karpenter import Karpenter
from reconciler.simulate.actors.karpenter.machines import Timing
from reconciler.simulate.actors.kubelets import Kubelets, NodeFailures
from reconciler.simulate.actors.scheduler import Scheduler
from reconciler.simulate.actors.workloads import Workloads
from reconciler.simulate.admission import SimulatedWebhook
from reconciler.simulate.bootstrap.market import market_of
from reconciler.simulate.bootstrap.nodes import put_claims, put_nodes, put_observed, put_openb_nodes, put_pools
from reconciler.simulate.controller import ControllerSettings, SimulatedController
from reconciler.simulate.extender import SimulatedExtender
from reconciler.simulate.invariants.monitor import Watching
from reconciler.simulate.objects import says
from reconciler.simulate.openb import TraceWriter, node_list
from reconciler.simulate.results.recorder import Recorder
from reconciler.simulate.runner.edits import Edits
from reconciler.simulate.runner.faults import Faults, FaultTargets
from reconciler.simulate.runner.play import Play, Revised
from reconciler.simulate.scenario.cluster import ScenarioMarket
from reconciler.simulate.scenario.spec import object_of
from reconciler.simulate.stage import Actor, Engine, Stage, seldom
from reconciler.simulate.workloads import Arrivals, always_runs
from reconciler.simulate.world import World

# --- The policies of a play: owner of the revision in force.


class PoliciesOverTime:
    """A Policies and an Actor: applies each revision at its time."""

    def __init__(self, revisions: tuple[Revised, ...], on_change: Callable[[Desired], None]) -> None:
        self._revisions = revisions
        self._on_change = on_change
        self._wished = Wished(revisions[0].desired)

    @property
    def desired(self) -> Desired:
        """The policies in force."""
        if self._wished.desired is None:
            raise TypeError("the play has no policies at its start")
        return self._wished.desired

    def start(self, stage: Stage) -> None:
        for each in self._revisions[1:]:
            change = partial(self._change_to, each.desired)
            stage.engine.at(Instant(stage.now + each.after_ms), "policies change", change)

    def wish(self, cluster_uid: str) -> Wished:
        return self._wished

    def _change_to(self, desired: Desired) -> None:
        self._wished = Wished(desired)
        self._on_change(desired)


_BEFORE_MS = 86_400_000  # age of the initial objects
_TELLS = 200  # number of progress reports


class RunOptions(msgspec.Struct, frozen=True):
    """Progress listener (in parts of 1), and an optional replacement for the planners."""

    tell: Callable[[float], None] | None = None
    brain: Callable[[], PlanService] = InProcess
    stops_when_broken: bool = False  # stop at the first violated invariant
    is_judged: bool = True  # check safety invariants
    publishers: tuple[Publisher, ...] = ()  # further publishers for each cycle
    look: Callable[[TimelineStep], None] | None = None  # called with each step of the timeline


def run(play: Play, watched: RunOptions = RunOptions()) -> Simulated:  # noqa: B008 - a frozen value
    """Raises NoCapacity, NoSuchPool for an impossible play."""
    with seldom():
        return _played(play, watched)


def _played(play: Play, watched: RunOptions) -> Simulated:
    market = market_of(play)
    warm_up_ms = play.scenario.warm_up.milliseconds
    engine = Engine(play.seed, Instant(play.start - warm_up_ms))
    stage = Stage(engine, beginning_of(play))
    stage.silent_nodes.update(_silent_nodes(stage.world))
    karpenter, failures = Karpenter(market, _timing(play.scenario.market)), NodeFailures()
    workloads, kubelets = Workloads(), Kubelets()
    policies = PoliciesOverTime(play.revisions, lambda desired: _follow(desired, recorder, controller))
    extender = SimulatedExtender(lambda: policies.desired.pools)
    if play.scenario.cluster.webhook:
        stage.world.webhook = SimulatedWebhook(stage.world, lambda: policies.desired.pools)
    scheduler, agents = Scheduler(extender, play.scenario.scheduler), Agents(play.scenario.cluster.boards)
    kubernetes: list[Actor] = [workloads, scheduler, kubelets, Budgets(), Collector(), TaintEvictionController()]
    crew: list[Actor] = [extender, agents, *kubernetes, failures, karpenter]
    early = [each for each in play.scenario.workloads if warm_up_ms and always_runs(each)]
    if warm_up_ms:
        _start(stage, [*crew, *(Arrivals(each, warm_up_ms=warm_up_ms) for each in early)])
        engine.run(play.start)
    recorder = Recorder(stage, play, market, watched.look)
    publishers = (recorder, *watched.publishers)
    setting = ControllerSettings(
        cycle_every_ms=play.scenario.cycle_every.milliseconds,
        brain=watched.brain,
        memory=play.memory,
        scheduler=play.scenario.scheduler,
    )
    controller = SimulatedController(policies, publishers, setting, extender)
    watching = Watching(recorder.where, lambda: policies.desired, controller.presence_ms, controller.remembered)
    victims = FaultTargets(controller, karpenter, failures, workloads, kubelets)
    faults = Faults(play.scenario.faults, victims, recorder.happen)
    edits = Edits(play.scenario, recorder.happen)
    later = [each for each in play.scenario.workloads if each not in early]
    arrivals = [Arrivals(each, play.trace(each.name).jobs) for each in later]
    judges = (watching,) if watched.is_judged else ()
    others = () if warm_up_ms else crew
    _start(stage, [*judges, *others, *arrivals, policies, controller, recorder, faults, edits])
    _run(play, watched, engine, watching)
    notices = tuple(notice for _, each in play.traces for notice in each.notices)
    return recorder.simulated(tuple(watching.broken), notices)


def _silent_nodes(world: World) -> Iterator[str]:
    """Nodes whose kubelet did not report in the observed cluster."""
    return (each["metadata"]["name"] for each in world.of("Node") if says(each, "Ready", "Unknown"))


def _start(stage: Stage, actors: Sequence[Actor]) -> None:
    for each in actors:
        each.start(stage)


def _run(play: Play, watched: RunOptions, engine: Engine, watching: Watching) -> None:
    for part in range(1, _TELLS + 1):
        engine.run(Instant(play.start + (play.end - play.start) * part // _TELLS))
        if watched.tell is not None:
            watched.tell(part / _TELLS)
        if watched.stops_when_broken and watching.broken:
            return


def _timing(market: ScenarioMarket) -> Timing:
    return Timing(
        launch_ms=market.launch_delay.milliseconds,
        registration_ms=market.registration_delay.milliseconds,
        initialization_ms=market.initialization_delay.milliseconds,
    )


def _follow(desired: Desired, recorder: Recorder, controller: SimulatedController) -> None:
    recorder.follow(desired)
    controller.wake()


def beginning_of(play: Play) -> World:
    """The initial cluster, a day before the start. Raises NoCapacity, NoSuchPool."""
    uid = play.observed.cluster_uid if play.observed else ""
    guarded = (guard.spec.cluster_uid for guard in play.first.guards if guard.spec.cluster_uid)
    own_namespace = play.observed.own_namespace if play.observed else names.OWN_NAMESPACE
    world = World(Instant(play.start - _BEFORE_MS), uid or next(guarded, "imagined"), own_namespace)
    if play.observed is not None:
        put_observed(world, play.observed)
    else:
        put_pools(world, play.first)
    put_nodes(world, play, market_of(play))
    put_openb_nodes(world, play.machines)
    for each in play.scenario.cluster.objects:
        world.put(object_of(each))
    put_claims(world, play.scenario.cluster.claims)
    return world


# --- The arrivals of a play without any reactions, as a trace: initial nodes, and pods.


class Traced(msgspec.Struct, frozen=True):
    """The two lists of an openb trace."""

    nodes: str
    pods: str


def traced(play: Play) -> Traced:
    """Raises NoCapacity, NoSuchPool."""
    engine = Engine(play.seed, play.start)
    stage = Stage(engine, beginning_of(play))
    nodes = node_list(stage.world.of("Node"))
    writer = TraceWriter(stage)
    for each in play.scenario.workloads:
        Arrivals(each, play.trace(each.name).jobs).start(stage)
    engine.run(play.end)
    return Traced(nodes, writer.pods())
