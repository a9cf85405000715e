"""The admission webhook of a replica: what its decisions depend on, and its server.

Every replica serves, whether or not it leads: decisions depend on policies and claims only, and write nothing.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from reconciler.controller.certificates import IssuedCertificates
from reconciler.kube.api_server import Unreachable, Writer, below, folder_in
from reconciler.kube.client import Client
from reconciler.kube.connections import Timeouts
from reconciler.kube.watch.changes import said
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.parsers import BadName
from reconciler.policy.shape import GROUP
from reconciler.ports import Policies, Wished
from reconciler.protocol.admission.decision import Grounds
from reconciler.serve.server import ListenAddress, Server
from reconciler.serve.tls import BadCertificate, TlsContext
from reconciler.serve.webhook import LIMITS, Webhook, WebhookMetrics
from reconciler.sources.input_file import UnfitFile, read_file

# --- What decisions depend on.

CLAIM_SECONDS = 1.0  # how long a claim that was read is used: pods of one claim are often created together
_MOST_CLAIMS = 4_096
_DEVICE_CLASSES = "deviceclasses.resource.k8s.io"


class _LastSeen(msgspec.Struct, frozen=True):
    """Policies and DeviceClasses of the last cycle."""

    desired: Desired
    device_class: str = ""
    why_unread: str = ""


_UNREAD = "the policies have not been read yet"


class SharedPolicies:
    """A Policies. Another thread reads `last_seen`, which is replaced as a whole."""

    def __init__(
        self,
        policies: Policies,
        observe: Callable[[], Observed],
        set_policies: Callable[[Desired], None] = lambda _: None,
    ) -> None:
        """`set_policies` is called with valid policies, on the thread that calls `wish`."""
        self._policies = policies
        self._observe = observe
        self._set_policies = set_policies
        self.last_seen: _LastSeen | None = None
        self.why_none = _UNREAD  # while nothing was seen

    @property
    def why_unready(self) -> str:
        """Why nobody can answer yet by the policies, not even that there are no valid ones."""
        return _UNREAD if self.last_seen is None and self.why_none == _UNREAD else ""

    def wish(self, cluster_uid: str) -> Wished:
        wished = self._policies.wish(cluster_uid)
        if wished.desired is None:
            self.why_none = wished.why or "no valid policies are in force"
        else:
            observed = self._observe()
            mapping = sorted(
                each.metadata.name
                for each in observed.device_classes
                if each.spec.extended_resource_name == names.NVIDIA_GPU
            )
            self.last_seen = _LastSeen(wished.desired, next(iter(mapping), ""), observed.why_unread(_DEVICE_CLASSES))
            self._set_policies(wished.desired)
        return wished


class _Claim(msgspec.Struct):
    spec: dict[str, Any] = {}


class ClaimLookup:
    """A Lookup: reads claims from the API server, so that a claim counts as soon as it is created."""

    def __init__(
        self, server: Writer, policies: SharedPolicies, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._server = server
        self._policies = policies
        self._monotonic = monotonic
        self._read: dict[tuple[str, str], tuple[float, dict[str, Any]]] = {}  # until when, and the spec
        self._lock = threading.Lock()

    def grounds(self, namespace: str, claim: str) -> Grounds | str:
        seen = self._policies.last_seen
        if seen is None:
            return self._policies.why_none
        if seen.why_unread:
            return seen.why_unread
        spec = self._known((namespace, claim))
        if spec is None:
            found = self._get(namespace, claim)
            if isinstance(found, str):
                return found
            spec = found.spec if found is not None else None
            if spec is not None:
                self._keep((namespace, claim), spec)
        return Grounds(spec, seen.desired.pools, seen.device_class)

    def _get(self, namespace: str, claim: str) -> _Claim | str | None:
        """The claim; None if there is none; or why it cannot be read."""
        try:
            answer = self._server.get(below(folder_in(namespace, GROUP, "gpuclaims"), claim))
            if answer.status == 404:
                return None
            if answer.status != 200:
                return f"the API server does not send the claim: {said(answer)}"
            return msgspec.json.decode(answer.body, type=_Claim)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _Claim()  # a spec that cannot be read
        except (Unreachable, BadName) as fault:
            return str(fault)

    def _known(self, key: tuple[str, str]) -> dict[str, Any] | None:
        with self._lock:
            until, spec = self._read.get(key, (0.0, None))
        return spec if self._monotonic() < until else None

    def _keep(self, key: tuple[str, str], spec: dict[str, Any]) -> None:
        with self._lock:
            if len(self._read) >= _MOST_CLAIMS:
                self._read.clear()
            self._read[key] = (self._monotonic() + CLAIM_SECONDS, spec)


# --- The webhook of a replica.

LOOKUP_TIMEOUTS = Timeouts(connect_seconds=1.0, answer_seconds=4.0)  # below LOOKUP_SECONDS of the webhook


class WebhookEndpoint:
    """Owns the TLS context and the client of the webhook."""

    def __init__(self, client: Client, policies: SharedPolicies, client_ca: Path | None = None) -> None:
        """`client_ca`: a file with the authorities of clients. Raises OSError."""
        self._client = client
        self._lookup = ClaimLookup(client, policies)
        self.tls = _tls_context(client_ca)
        self._webhook: Webhook | None = None

    def server(self, address: ListenAddress, metrics: WebhookMetrics) -> Server:
        """Binds the address. Raises OSError."""
        self._webhook = Webhook(self._lookup, metrics.count)
        return Server(address, self._webhook.application(), LIMITS, self.tls)

    def stop(self) -> None:
        if self._webhook is not None:
            self._webhook.stop()
        self._client.close()

    def load(self, issued: IssuedCertificates) -> None:
        """Serves with a new certificate. Called on the thread that serves. Raises BadCertificate."""
        self.tls.load(issued.serving)


_MOST_CA_BYTES = 1 << 20


def _tls_context(client_ca: Path | None) -> TlsContext:
    if client_ca is None:
        return TlsContext()
    try:
        return TlsContext(read_file(client_ca, _MOST_CA_BYTES))
    except BadCertificate as fault:
        remedy = "name a file with the certificate authority of the API server's client certificate"
        raise UnfitFile(client_ca.as_posix(), str(fault), remedy) from None
