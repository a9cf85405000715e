"""What would come in a play, without anybody who acts on it, as a trace: the nodes of its beginning, and its pods."""

import msgspec

from reconciler.simulate.engine import Engine
from reconciler.simulate.runner.play import Play
from reconciler.simulate.runner.run import beginning_of
from reconciler.simulate.stage import Stage
from reconciler.simulate.workloads.arrivals import Arrivals
from reconciler.simulate.workloads.openb.writing import TraceWriter, node_list


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
