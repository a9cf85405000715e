"""The admission webhook of a replica: what its decisions depend on, its certificates, and its server.

Every replica serves, whether or not it leads: decisions depend on policies and claims only, and write nothing.
A thread looks after the certificates: the API server may answer slowly, and the endpoints must not wait.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from reconciler.controller.cluster import current_instant
from reconciler.controller.publishers import Log
from reconciler.kube.api_server import Unreachable, Writer, below, folder_in
from reconciler.kube.client import Client, Timeouts
from reconciler.kube.watch.changes import said
from reconciler.kube.webhook_objects import WebhookObjects
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.parsers import BadName
from reconciler.policy.shape import GROUP
from reconciler.ports import Policies, Stale, Unavailable, Wished
from reconciler.protocol.admission.decision import Grounds
from reconciler.protocol.certificates import next_steps, service_names
from reconciler.serve.certificates import (
    Certificates,
    DamagedCertificates,
    apply_steps,
    fingerprints,
    read_certificates,
    written_certificates,
)
from reconciler.serve.server import ListenAddress, Server
from reconciler.serve.tls import BadCertificate, ServingCertificate, TlsContext
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


class SharedPolicies:
    """A Policies. Another thread reads `last_seen`, which is replaced as a whole."""

    def __init__(self, policies: Policies, observe: Callable[[], Observed]) -> None:
        self._policies = policies
        self._observe = observe
        self.last_seen: _LastSeen | None = None
        self.why_none = "the policies have not been read yet"  # while nothing was seen

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


# --- Certificates. A CertificateKeeper owns its thread.

LOOK_SECONDS = 30.0
_AFTER_A_FAULT_SECONDS = 2.0
STOP_SECONDS = 2.0

Hand = Callable[[ServingCertificate], object]


class CertificateKeeper:
    """Keeps the Secret and the caBundle as protocol/certificates.py demands, and hands over each new certificate."""

    def __init__(self, objects: WebhookObjects, namespace: str, log: Log, now: Callable[[], Instant]) -> None:
        self._objects = objects
        self._names = service_names(names.WEBHOOK_SERVICE, namespace)
        self._log = log
        self._now = now
        self._hand: Hand = lambda _: None
        self._handed: ServingCertificate | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="certificates", daemon=True)
        self.trouble = "the certificates of the webhook have not been read yet"

    def start(self, hand: Hand) -> None:
        """`hand` is called on the keeper's thread."""
        self._hand = hand
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    @property
    def why_unready(self) -> str:
        """Why there is no certificate to serve with. Later troubles do not end the service of a valid one."""
        return "" if self._handed is not None else self.trouble

    def step(self) -> None:
        """Looks once. Raises Stale, Unavailable."""
        now = self._now()
        secret = self._objects.read_secret()
        try:
            certificates = read_certificates(secret.content)
        except DamagedCertificates as fault:
            self._log.tell("webhook", f"new certificates are made: {fault}", "warning")
            certificates = Certificates()
        self._hand_over(certificates)
        published = self._objects.read_bundle()
        known = fingerprints(published.bundle) if published is not None else None
        steps = next_steps(certificates.facts, self._names, known, now)
        if not steps.is_nothing:
            certificates = apply_steps(certificates, steps, self._names, now)
            self._objects.write_secret(written_certificates(certificates), secret.version)
            self._hand_over(certificates)
        if published is not None and published.bundle != certificates.bundle:
            self._objects.publish_bundle(certificates.bundle, published)

    def _hand_over(self, certificates: Certificates) -> None:
        if certificates.serving is not None and certificates.serving != self._handed:
            self._hand(certificates.serving)
            self._handed = certificates.serving

    def _run(self) -> None:
        wait_seconds = 0.0
        while not self._stop.wait(wait_seconds):
            wait_seconds = _AFTER_A_FAULT_SECONDS
            trouble = ""
            try:
                self.step()
                wait_seconds = LOOK_SECONDS
            except Stale:
                continue  # another replica wrote first: read what it wrote
            except Unavailable as fault:
                trouble = str(fault)
            except Exception as fault:  # noqa: BLE001 - a thread that ends would let the certificates expire
                trouble = f"the certificates could not be renewed because of a bug: {type(fault).__name__}"
            if trouble and trouble != self.trouble:
                self._log.tell("webhook", trouble, "warning")
            self.trouble = trouble


# --- The webhook of a replica.

LOOKUP_TIMEOUTS = Timeouts(connect_seconds=1.0, answer_seconds=4.0)  # below LOOKUP_SECONDS of the webhook


class WebhookEndpoint:
    """Owns the certificate keeper, the TLS context and the client of the webhook."""

    def __init__(
        self, client: Client, namespace: str, policies: SharedPolicies, log: Log, client_ca: Path | None = None
    ) -> None:
        """`client_ca`: a file with the authorities of clients. Raises OSError."""
        self._client = client
        self._keeper = CertificateKeeper(WebhookObjects(client, namespace), namespace, log, current_instant)
        self._lookup = ClaimLookup(client, policies)
        self._log = log
        self._tls = _tls_context(client_ca)
        self._webhook: Webhook | None = None

    def server(self, address: ListenAddress, metrics: WebhookMetrics) -> Server:
        """Binds the address. Raises OSError."""
        self._webhook = Webhook(self._lookup, metrics.count)
        return Server(address, self._webhook.application(), LIMITS, self._tls)

    def start(self, call_soon: Callable[..., object]) -> None:
        """`call_soon` calls a function on the thread that serves."""
        self._keeper.start(lambda certificate: call_soon(self._load, certificate))

    def stop(self) -> None:
        self._keeper.stop()
        if self._webhook is not None:
            self._webhook.stop()
        self._client.close()

    @property
    def why_unready(self) -> str:
        return self._keeper.why_unready

    def _load(self, certificate: ServingCertificate) -> None:
        try:
            self._tls.load(certificate)
        except BadCertificate as fault:
            self._log.tell("webhook", str(fault), "error")


_MOST_CA_BYTES = 1 << 20


def _tls_context(client_ca: Path | None) -> TlsContext:
    if client_ca is None:
        return TlsContext()
    try:
        return TlsContext(read_file(client_ca, _MOST_CA_BYTES))
    except BadCertificate as fault:
        remedy = "name a file with the certificate authority of the API server's client certificate"
        raise UnfitFile(client_ca.as_posix(), str(fault), remedy) from None
