"""`reconciler agent`: runs beside a workload."""

import signal
import threading
import time
from pathlib import Path
from typing import Any

import click

from reconciler.agent.elastic import Controller, ElasticAgent
from reconciler.agent.negotiation import Negotiation
from reconciler.agent.own_pod import OwnPod
from reconciler.agent.usage import ROOT, CgroupUsage
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import Parsed
from reconciler.fleet.pressure.pods import ElasticBounds, elastic_bounds
from reconciler.model.names import ELASTIC
from reconciler.protocol.asks import PodName

_FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)


def _pod(text: str) -> PodName:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name):
        raise ValueError(f'"{text}" is not a pod; write NAMESPACE/NAME')
    return PodName(namespace, name)


def _bounds(text: str) -> ElasticBounds:
    bounds = elastic_bounds(text)
    if bounds is None:
        raise ValueError(f'"{text}" has no bounds; write cpu=250m..4,memory=1Gi..16Gi')
    return bounds


def _controller(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError(f'"{text}" is not an address; write reconciler-agents.gpu-system.svc:443')
    return host.strip("[]"), int(port)


@click.command()
@click.option("--elastic", is_flag=True, required=True, help="Ask for the resources of an elastic pod.")
@click.option(
    "--controller", type=Parsed("HOST:PORT", _controller), required=True, help="Where the controller answers."
)
@click.option("--authority", type=_FILE, required=True, help="Authority of the controller's certificate, in PEM.")
@click.option("--token", type=_FILE, required=True, help="Token of the pod for the audience reconciler-agents.")
@click.option("--pod", type=Parsed("NAMESPACE/NAME", _pod), required=True, envvar="POD", help="The pod.")
@click.option(
    "--bounds",
    type=Parsed("BOUNDS", _bounds),
    required=True,
    envvar="ELASTIC_BOUNDS",
    help=f"The bounds of the pod, as in its annotation {ELASTIC}.",
)
@click.option("--cgroup", type=click.Path(path_type=Path), default=ROOT, show_default=True, help="The control group.")
@click.option("--interval", type=click.IntRange(1, 3_600), default=5, show_default=True, help="Seconds between asks.")
@click.option(
    "--resize",
    is_flag=True,
    help="While the controller is away for a minute, resize the pod within its last permit. Needs the right to patch "
    "pods/resize.",
)
def command(elastic: bool, **chosen: Any) -> ExitCode:  # noqa: ARG001 - the only agent there is
    """Run beside a workload, and ask the controller for the resources that the workload needs."""
    stop = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: stop.set())
    usage, (host, port) = CgroupUsage(chosen["cgroup"]), chosen["controller"]
    agent = ElasticAgent(
        Controller(host, port, chosen["authority"], chosen["token"]),
        Negotiation(chosen["pod"], chosen["bounds"]),
        lambda: usage.read(time.monotonic()),
        lambda words: click.echo(words, err=True),
        OwnPod(chosen["pod"]).resize if chosen["resize"] else None,
    )
    agent.run(stop, chosen["interval"])
    return ExitCode.FINE
