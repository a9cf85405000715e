"""`reconciler run`: the controller."""

import os
import signal
from pathlib import Path
from typing import Any

import click

from reconciler import controller
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import answered, history_option, live_question_options
from reconciler.controller.run import Settings
from reconciler.controller.run import run as run_replica
from reconciler.protocol.leadership import LONGEST_LEASE_MS
from reconciler.serve.server import ListenAddress


class AddressType(click.ParamType[ListenAddress]):
    """Parses 127.0.0.1:8080, [::]:8080, and :8080 for all addresses of the machine."""

    name = "HOST:PORT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> ListenAddress:
        if isinstance(value, ListenAddress):
            return value
        host, _, port = str(value).rpartition(":")
        if not port.isdecimal() or int(port) > 65_535:
            self.fail(f'"{value}" is not an address; write 127.0.0.1:8080.', param, ctx)
        return ListenAddress(host.strip("[]") or "0.0.0.0", int(port))  # noqa: S104 - where somebody asks for it


@click.command()
@live_question_options
@click.option(
    "--listen",
    "address",
    type=AddressType(),
    default="127.0.0.1:8080",
    show_default=True,
    help="Address of /metrics, /healthz and /readyz.",
)
@click.option(
    "--probes",
    "probe_address",
    type=AddressType(),
    help="Separate address of /healthz and /readyz, for the kubelet.",
)
@click.option(
    "--webhook",
    "webhook_address",
    type=AddressType(),
    help="Address of the admission webhook for pods with a GpuClaim, over HTTPS. By default there is none.",
)
@click.option(
    "--webhook-client-ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --webhook: answer only clients with a certificate of an authority in this file.",
)
@history_option
@click.option(
    "--lease-seconds",
    type=click.IntRange(3, LONGEST_LEASE_MS // 1_000),
    default=15,
    show_default=True,
    metavar="N",
    help="Duration of the leader Lease: how long another replica waits for a dead leader.",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(question: controller.Question, **chosen: Any) -> int:
    """Run the controller: apply the policies to the cluster continuously. With several replicas, one leads."""
    if chosen["webhook_client_ca"] is not None and chosen["webhook_address"] is None:
        raise click.UsageError("--webhook-client-ca requires --webhook")
    end = answered(lambda: run_replica(Settings(question, **chosen)))
    code = ExitCode.INTERRUPTED if end.signal == signal.SIGINT else ExitCode.FINE
    if end.is_stuck:  # Python would wait for threads that wait for an API server
        os._exit(code)
    return code
