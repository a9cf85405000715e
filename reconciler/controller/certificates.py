"""The certificates of a replica's endpoints: made, renewed, stored and handed to the endpoints while they serve.

Every replica does this, whether or not it leads, with the versions of the stored objects as arbiter. A thread does it:
the API server may answer slowly, and the endpoints must not wait.
"""

import threading
from collections.abc import Callable, Mapping

import msgspec

from reconciler.controller.publishers import Log
from reconciler.kube.certificate_objects import CertificateObjects
from reconciler.kube.secrets import TLS, StoredSecret
from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.ports import Stale, Unavailable
from reconciler.protocol.certificates import (
    SchedulerFacts,
    client_signer,
    next_steps,
    service_names,
    with_pods,
)
from reconciler.serve.certificates import (
    AUTHORITIES,
    Certificates,
    DamagedCertificates,
    apply_steps,
    fingerprints,
    read_certificates,
    read_scheduler_secret,
    written_certificates,
    written_scheduler_secret,
)
from reconciler.serve.tls import CertificatePair

LOOK_SECONDS = 30.0
_AFTER_A_FAULT_SECONDS = 2.0
STOP_SECONDS = 2.0


class IssuedCertificates(msgspec.Struct, frozen=True):
    """What endpoints serve with: the serving certificate, and the authorities that verify clients."""

    serving: CertificatePair
    authorities: bytes  # PEM


class CertificateUses(msgspec.Struct, frozen=True):
    """The endpoints of a replica that need certificates."""

    webhook: bool = False
    extender: bool = False
    agents: bool = False


Hand = Callable[[IssuedCertificates], object]


def endpoint_names(namespace: str) -> tuple[str, ...]:
    """Names in the serving certificate: of all Services, so that replicas with other arguments agree on them."""
    services = (names.WEBHOOK_SERVICE, names.EXTENDER_SERVICE, names.AGENTS_SERVICE)
    return tuple(sorted(each for service in services for each in service_names(service, namespace)))


class _SchedulerObjects(msgspec.Struct, frozen=True):
    """The Secret of the second scheduler, the only client of the extender, and the starts of its pods by name."""

    secret: StoredSecret
    started: Mapping[str, Instant]

    def facts(self, certificates: Certificates, now: Instant) -> SchedulerFacts:
        facts = read_scheduler_secret(self.secret.content, certificates.authorities)
        return with_pods(facts, certificates.facts, self.started, now)


class CertificateKeeper:
    """Keeps the stored certificates as protocol/certificates.py demands, and hands over new ones. Owns its thread."""

    def __init__(
        self,
        objects: CertificateObjects,
        namespace: str,
        uses: CertificateUses,
        log: Log,
        now: Callable[[], Instant],
    ) -> None:
        self._objects = objects
        self._names = endpoint_names(namespace)
        self._uses = uses
        self._log = log
        self._now = now
        self._hand: Hand = lambda _: None
        self._handed: IssuedCertificates | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="certificates", daemon=True)
        self.trouble = "the certificates of the endpoints have not been read yet"

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
            self._log.tell("certificates", f"new certificates are made: {fault}", "warning")
            certificates = Certificates()
        self._hand_over(certificates)
        published = self._objects.read_bundle() if self._uses.webhook else None
        known = fingerprints(published.bundle) if published is not None else None
        scheduler = self._read_scheduler() if self._uses.extender else None
        facts = scheduler.facts(certificates, now) if scheduler is not None else None
        steps = next_steps(certificates.facts, self._names, known, now, facts)
        if not steps.is_nothing:
            certificates = apply_steps(certificates, steps, self._names, now)
            self._objects.write_secret(written_certificates(certificates), secret.version)
            self._hand_over(certificates)
        if published is not None and published.bundle != certificates.bundle:
            self._objects.publish_bundle(certificates.bundle, published)
        if self._uses.agents:
            self._objects.publish_authorities(certificates.bundle)
        if scheduler is not None:
            self._keep_scheduler(certificates, scheduler, known, now)

    def _read_scheduler(self) -> _SchedulerObjects:
        secret = self._objects.read_secret(names.SCHEDULER_CERTIFICATES)
        return _SchedulerObjects(secret, self._objects.scheduler_starts())

    def _keep_scheduler(
        self, certificates: Certificates, scheduler: _SchedulerObjects, known: frozenset[str] | None, now: Instant
    ) -> None:
        """Renews the Secret of the scheduler, then evicts one of its pods that does not know every authority."""
        facts, content = scheduler.facts(certificates, now), scheduler.secret.content
        signer = client_signer(certificates.facts, names.GPU_SCHEDULER, known, now, facts)
        if signer or content.get(AUTHORITIES) != certificates.bundle:
            content = written_scheduler_secret(content, certificates, signer, names.GPU_SCHEDULER, now)
            self._objects.write_secret(content, scheduler.secret.version, names.SCHEDULER_CERTIFICATES, TLS)
        elif facts.outdated:
            pod = facts.outdated[0]
            self._log.tell("certificates", f"Pod/{pod} is evicted: kube-scheduler reads a new authority when it starts")
            self._objects.evict(pod)

    def _hand_over(self, certificates: Certificates) -> None:
        if certificates.serving is None:
            return
        issued = IssuedCertificates(certificates.serving, certificates.bundle)
        if issued != self._handed:
            self._hand(issued)
            self._handed = issued

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
                self._log.tell("certificates", trouble, "warning")
            self.trouble = trouble
