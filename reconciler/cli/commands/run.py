"""`reconciler run`: the controller."""

import os
import signal
from pathlib import Path
from typing import Any

import click

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import Parsed, answered, history_option, live_question_options
from reconciler.controller.agents import AgentSettings
from reconciler.controller.policies import Question
from reconciler.controller.run import ExtenderFiles, ExtenderSettings, Settings
from reconciler.controller.run import run as run_replica
from reconciler.protocol.agent_identity import AgentsAccount
from reconciler.protocol.leadership import LONGEST_LEASE_MS
from reconciler.serve.server import ListenAddress

_FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)


def _address(text: str) -> ListenAddress:
    """Such as 127.0.0.1:8080, [::]:8080, or :8080 for all addresses of the machine."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f'"{text}" is not an address; write 127.0.0.1:8080')
    return ListenAddress(host.strip("[]") or "0.0.0.0", int(port))  # noqa: S104 - where somebody asks for it


_ADDRESS = Parsed("HOST:PORT", _address)


def _account(text: str) -> AgentsAccount:
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        raise ValueError(f'"{text}" is not an account; write NAMESPACE/NAME')
    return AgentsAccount(namespace, name)


@click.command()
@live_question_options
@click.option(
    "--listen",
    "address",
    type=_ADDRESS,
    default="127.0.0.1:8080",
    show_default=True,
    help="Address of /metrics, /healthz and /readyz.",
)
@click.option(
    "--probes",
    "probe_address",
    type=_ADDRESS,
    help="Separate address of /healthz and /readyz, for the kubelet.",
)
@click.option(
    "--extender",
    "extender_address",
    type=_ADDRESS,
    help="Address of the scheduler extender for pods with a GpuClaim, over HTTPS. Without this option there is no "
    "extender. The extender accepts only clients with a certificate for the common name gpu-scheduler. The replicas "
    "create the certificates, unless the next three options name files.",
)
@click.option("--tls-certificate", type=_FILE, help="With --extender: its certificate, in PEM.")
@click.option("--tls-key", type=_FILE, help="With --extender: the private key of --tls-certificate, in PEM.")
@click.option(
    "--client-authority",
    type=_FILE,
    help="With --extender: the authority of the scheduler's client certificate, in PEM.",
)
@click.option(
    "--scheduler",
    type=click.Choice(["external", "builtin"]),
    default="external",
    show_default=True,
    help="What binds pods with a GpuClaim: a second kube-scheduler that asks --extender, or, in small clusters, the "
    "leader itself.",
)
@click.option(
    "--webhook",
    "webhook_address",
    type=_ADDRESS,
    help="Address of the admission webhook for pods with a GpuClaim, over HTTPS. Without this option there is no "
    "webhook.",
)
@click.option(
    "--webhook-client-ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --webhook: answer only clients with a certificate of an authority in this file.",
)
@click.option(
    "--agents",
    "agents_address",
    type=_ADDRESS,
    help="Address where agents of elastic pods ask for permits, over HTTPS with certificates that the replicas make. "
    "By default there is none.",
)
@click.option(
    "--agents-account",
    type=Parsed("NAMESPACE/NAME", _account),
    help="With --agents: the ServiceAccount of agents that ask for all pods of their node, and may read /debug/state.",
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
def command(question: Question, **chosen: Any) -> int:
    """Run the controller: apply the policies to the cluster continuously. With several replicas, one leads."""
    chosen["extender"] = _extender(chosen)
    chosen["agents"] = _agents(chosen)
    if chosen["extender"] is not None and chosen["scheduler"] == "builtin":
        raise click.UsageError("--scheduler builtin binds pods itself: omit --extender.")
    if chosen["webhook_client_ca"] is not None and chosen["webhook_address"] is None:
        raise click.UsageError("--webhook-client-ca requires --webhook")
    end = answered(lambda: run_replica(Settings(question, **chosen)))
    code = ExitCode.INTERRUPTED if end.signal == signal.SIGINT else ExitCode.FINE
    if end.is_stuck:  # Python would wait for threads that wait for an API server
        os._exit(code)
    return code


def _agents(chosen: dict[str, Any]) -> AgentSettings | None:
    """Takes the options of the agents. Raises UsageError."""
    address, account = chosen.pop("agents_address"), chosen.pop("agents_account")
    if address is None and account is not None:
        raise click.UsageError("--agents-account requires --agents")
    return AgentSettings(address, account) if address is not None else None


def _extender(chosen: dict[str, Any]) -> ExtenderSettings | None:
    """Takes the options of the extender. Raises UsageError."""
    files = [chosen.pop(each) for each in ("tls_certificate", "tls_key", "client_authority")]
    address = chosen.pop("extender_address")
    if any(files) and not all(files):
        raise click.UsageError("--tls-certificate, --tls-key and --client-authority require each other")
    if address is None:
        if any(files):
            raise click.UsageError("--tls-certificate requires --extender")
        return None
    return ExtenderSettings(address, ExtenderFiles(*files) if all(files) else None)
