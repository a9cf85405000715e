"""The certificates of the endpoints and of the scheduler are kept, renewed and published."""

import io
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from reconciler.controller.certificates import CertificateKeeper, CertificateUses
from reconciler.controller.publishers import Log
from reconciler.kube.certificate_objects import CertificateObjects
from reconciler.model import names
from reconciler.model.instant import Instant, timestamp
from reconciler.ports import Stale, Unavailable
from reconciler.protocol.certificates import AUTHORITY_MS, SERVING_MS, SETTLE_MS, service_names
from reconciler.serve.certificates import AUTHORITIES, AUTHORITY_KEYS, CHAIN, KEY, fingerprints, read_certificates
from reconciler.serve.tls import CertificatePair, TlsContext
from tests.unit.controller.webhook_server import CONFIGURATION, SECRETS, WebhookServer

START = 1_800_000_000_000
WEBHOOK, BOTH = CertificateUses(webhook=True), CertificateUses(webhook=True, extender=True)


class World:
    """An API server, a clock, and keepers."""

    def __init__(self) -> None:
        self.server = WebhookServer()
        self.now = START
        self.log = io.StringIO()

    def keeper(self, uses: CertificateUses = WEBHOOK) -> tuple[CertificateKeeper, list[CertificatePair]]:
        objects = CertificateObjects(self.server, "gpu-system")
        keeper = CertificateKeeper(objects, "gpu-system", uses, Log(stream=self.log), lambda: Instant(self.now))
        served: list[CertificatePair] = []
        keeper._hand = lambda issued: served.append(issued.serving)  # noqa: SLF001 - steps without a thread
        return keeper, served

    def stored(self) -> Any:
        assert self.server.secret is not None
        objects = CertificateObjects(self.server, "gpu-system")
        return read_certificates(objects.read_secret().content)


def verified(certificate: CertificatePair, bundle: bytes, now: int) -> bool:
    """As an API server verifies."""
    store = verification.Store(x509.load_pem_x509_certificates(bundle))
    moment = time.gmtime(now // 1000)
    builder = verification.PolicyBuilder().store(store).time(_datetime(moment))
    verifier = builder.build_server_verifier(x509.DNSName(service_names("reconciler-webhook", "gpu-system")[0]))
    try:
        verifier.verify(x509.load_pem_x509_certificate(certificate.chain), [])
    except verification.VerificationError:
        return False
    return True


def _datetime(moment: time.struct_time) -> Any:
    import datetime  # noqa: PLC0415

    return datetime.datetime(*moment[:6])  # noqa: DTZ001 - UTC, as the library takes it


def test_certificates_are_made_stored_published_and_served() -> None:
    world = World()
    world.server.install()
    keeper, served = world.keeper()
    assert keeper.why_unready
    keeper.step()
    assert not keeper.why_unready
    (certificate,) = served
    assert verified(certificate, world.server.bundle, world.now)
    TlsContext().load(certificate)
    assert world.server.secret is not None
    assert world.server.secret["type"] == "Opaque"
    writes = len(world.server.writes)
    keeper.step()
    assert (len(world.server.writes), len(served)) == (writes, 1)


def test_without_a_configuration_the_certificate_is_served_and_published_later() -> None:
    world = World()
    keeper, served = world.keeper()
    keeper.step()
    world.server.install()
    keeper.step()
    assert verified(served[0], world.server.bundle, world.now)


def test_what_another_replica_stored_is_served() -> None:
    world = World()
    first, served = world.keeper()
    second, served_too = world.keeper()
    world.server.before_write = first.step
    with pytest.raises(Stale):
        second.step()
    second.step()
    assert served == served_too
    assert len(world.stored().authorities) == 1


def test_a_configuration_that_somebody_changes_meanwhile_is_read_again() -> None:
    world = World()
    keeper, _ = world.keeper()
    keeper.step()
    world.server.install()
    world.server.before_write = world.server.install
    with pytest.raises(Stale):
        keeper.step()
    keeper.step()
    assert fingerprints(world.server.bundle) == {each.fingerprint for each in world.stored().facts.authorities}


def test_over_years_every_certificate_is_verified_by_what_is_published_before_and_after() -> None:
    """Three replicas that look at different times: the last one serves what it has for a minute longer."""
    world = World()
    world.server.install()
    replicas = [world.keeper() for _ in range(3)]
    turns = [(0, 30_000), (1, 30_000), (0, 30_000), (2, SETTLE_MS), (1, 30_000), (0, 30_000), (2, 3 * 86_400_000)]
    bundles: set[bytes] = set()
    authorities = 0
    for number in range(1_800):
        replica, pause_ms = turns[number % len(turns)]
        keeper, _ = replicas[replica]
        before = world.server.bundle
        keeper.step()
        for _, served in replicas:
            if served:
                assert verified(served[-1], world.server.bundle, world.now)
                assert number < 4 or verified(served[-1], before, world.now)
        bundles.add(world.server.bundle)
        authorities = max(authorities, len(world.stored().authorities))
        world.now += pause_ms
    assert world.now > START + 2 * AUTHORITY_MS
    assert authorities == 2
    assert len(bundles) > 4
    assert len(replicas[0][1]) > 770 * 86_400_000 // SERVING_MS


@pytest.mark.parametrize("key", [AUTHORITIES, AUTHORITY_KEYS, CHAIN, KEY])
@pytest.mark.parametrize("content", [None, b"", b"x", b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"])
def test_a_damaged_secret_is_replaced(key: str, content: bytes | None) -> None:
    world = World()
    world.server.install()
    keeper, served = world.keeper()
    keeper.step()
    world.server.damage(key, content)
    keeper.step()
    assert len(served) == 2
    assert verified(served[-1], world.server.bundle, world.now)
    assert "new certificates are made" in world.log.getvalue()
    assert "PRIVATE" not in world.log.getvalue()


def test_a_secret_with_the_key_of_another_certificate_is_replaced() -> None:
    world, other = World(), World()
    world.server.install()
    keeper, served = world.keeper()
    keeper.step()
    stranger, _ = other.keeper()
    stranger.step()
    world.server.damage(KEY, other.stored().serving.key)
    keeper.step()
    assert verified(served[-1], world.server.bundle, world.now)


@pytest.mark.parametrize("path", [SECRETS, CONFIGURATION])
def test_a_missing_right_is_told_with_the_remedy(path: str) -> None:
    world = World()
    world.server.install()
    world.server.refused = {path: 403}
    keeper, _ = world.keeper()
    with pytest.raises(Unavailable, match=r"deploy/webhook/rbac\.yaml"):
        keeper.step()


def test_a_stored_certificate_is_served_while_the_configuration_cannot_be_read() -> None:
    world = World()
    world.keeper()[0].step()
    world.server.refused = {CONFIGURATION: 500}
    keeper, served = world.keeper()
    with pytest.raises(Unavailable):
        keeper.step()
    assert served
    assert not keeper.why_unready


def test_the_thread_tells_of_troubles_once_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.controller.certificates._AFTER_A_FAULT_SECONDS", 0.01)
    world = World()
    world.server.is_away = True
    keeper, _ = world.keeper()
    handed = threading.Event()
    keeper.start(lambda _: handed.set())
    assert _comes(lambda: "cannot be reached" in keeper.trouble)
    assert "cannot be reached" in keeper.why_unready
    time.sleep(0.1)
    world.server.is_away = False
    assert handed.wait(10)
    keeper.stop()
    assert world.log.getvalue().count("cannot be reached") == 1


def _comes(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.005)
    return is_so()


# --- The second scheduler.


def scheduler_secret(world: World) -> dict[str, bytes]:
    return CertificateObjects(world.server, "gpu-system").read_secret(names.SCHEDULER_CERTIFICATES).content  # type: ignore[return-value]


def is_served(content: dict[str, bytes], authorities: bytes, now: int) -> bool:
    """Whether a replica with these authorities serves the scheduler with this Secret."""
    store = verification.Store(x509.load_pem_x509_certificates(authorities))
    verifier = verification.PolicyBuilder().store(store).time(_datetime(time.gmtime(now // 1000)))
    verifier = verifier.extension_policies(  # a client is known by its common name, and has no other names
        ca_policy=verification.ExtensionPolicy.webpki_defaults_ca(),
        ee_policy=verification.ExtensionPolicy.permit_all(),
    )
    certificate = x509.load_pem_x509_certificate(content[CHAIN])
    try:
        verifier.build_client_verifier().verify(certificate, [])
    except verification.VerificationError:
        return False
    (name,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    return name.value == names.GPU_SCHEDULER and list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


@pytest.mark.parametrize("uses", [BOTH, CertificateUses(extender=True)])
def test_the_scheduler_gets_a_client_certificate_and_no_key_of_an_authority(uses: CertificateUses) -> None:
    world = World()
    world.server.install()
    keeper, served = world.keeper(uses)
    keeper.step()
    content = scheduler_secret(world)
    assert is_served(content, world.stored().bundle, world.now)
    assert verified(served[-1], content[AUTHORITIES], world.now)
    assert set(content) == {AUTHORITIES, CHAIN, KEY}
    assert world.server.secrets[names.SCHEDULER_CERTIFICATES]["type"] == "kubernetes.io/tls"
    stored = world.server.secret
    assert stored is not None
    assert content[KEY] not in read_keys(stored)
    writes = len(world.server.writes)
    keeper.step()
    assert len(world.server.writes) == writes
    assert bool(world.server.bundle) == uses.webhook


def read_keys(secret: Any) -> list[bytes]:
    from base64 import b64decode  # noqa: PLC0415

    return [b64decode(secret["data"][key]) for key in (AUTHORITY_KEYS, KEY)]


def test_a_replica_without_an_extender_leaves_the_secret_of_the_scheduler_alone() -> None:
    world = World()
    world.server.refused = {f"{SECRETS}/{names.SCHEDULER_CERTIFICATES}": 403}
    world.keeper()[0].step()
    assert list(world.server.secrets) == [names.WEBHOOK_CERTIFICATES]


@pytest.mark.parametrize("key", [AUTHORITIES, CHAIN, KEY])
@pytest.mark.parametrize("content", [None, b"", b"x", b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"])
def test_a_damaged_secret_of_the_scheduler_is_replaced(key: str, content: bytes | None) -> None:
    world = World()
    keeper, _ = world.keeper(BOTH)
    keeper.step()
    world.server.damage(key, content, names.SCHEDULER_CERTIFICATES)
    keeper.step()
    found = scheduler_secret(world)
    assert is_served(found, world.stored().bundle, world.now)
    assert found[AUTHORITIES] == world.stored().bundle


def test_the_serving_certificate_is_no_certificate_of_a_client_and_is_replaced_there() -> None:
    world = World()
    keeper, served = world.keeper(BOTH)
    keeper.step()
    world.server.damage(CHAIN, served[-1].chain, names.SCHEDULER_CERTIFICATES)
    world.server.damage(KEY, served[-1].key, names.SCHEDULER_CERTIFICATES)
    keeper.step()
    assert is_served(scheduler_secret(world), world.stored().bundle, world.now)


class Schedulers:
    """Pods of the scheduler: they read authorities when they start, and their client certificate at each connection."""

    def __init__(self, world: World, pods: int) -> None:
        self.world = world
        self.known: dict[str, bytes] = {}
        self.made = 0
        self.pods = pods

    def reconcile(self) -> None:
        server = self.world.server
        for name in [each for each in self.known if each not in server.started]:
            del self.known[name]
        while len(server.started) < self.pods and names.SCHEDULER_CERTIFICATES in server.secrets:
            name, self.made = f"gpu-scheduler-{self.made}", self.made + 1
            server.started[name] = timestamp(Instant(self.world.now // 1000 * 1000))
            self.known[name] = scheduler_secret(self.world)[AUTHORITIES]


def test_over_years_every_scheduler_and_every_replica_verify_each_other() -> None:
    """Two replicas and two pods of the scheduler. A pod is replaced once for each authority, and not more often."""
    world = World()
    world.server.install()
    replicas = [world.keeper(BOTH) for _ in range(2)]
    schedulers = Schedulers(world, 2)
    pauses = [30_000, 30_000, 60_000, SETTLE_MS, 30_000, 9 * 86_400_000]
    authorities: set[str] = set()
    for number in range(510):
        keeper, _ = replicas[number % 2]
        with_before = world.stored().bundle if world.server.secret else b""
        try:
            keeper.step()
        except Stale:
            keeper.step()
        schedulers.reconcile()
        authorities |= {each.fingerprint for each in world.stored().facts.authorities}
        for known in schedulers.known.values():
            assert all(verified(served[-1], known, world.now) for _, served in replicas if served), number
        for bundle in (world.stored().bundle, with_before):
            assert not bundle or is_served(scheduler_secret(world), bundle, world.now), number
        world.now += pauses[number % len(pauses)]
    assert world.now > START + 2 * AUTHORITY_MS
    assert len(world.stored().authorities) <= 2
    assert len(authorities) > 3
    assert len(world.server.evicted) == 2 * (len(authorities) - 1)


def test_while_a_pod_of_the_scheduler_does_not_know_an_authority_the_authority_signs_nothing() -> None:
    """Evictions are refused, as by a PodDisruptionBudget."""
    world = World()
    world.server.install()
    keeper, _ = world.keeper(BOTH)
    keeper.step()
    schedulers = Schedulers(world, 1)
    schedulers.reconcile()
    first = world.stored().facts.serving.signer
    world.server.refused = {"/api/v1/namespaces/gpu-system/pods/": 429}
    world.now += AUTHORITY_MS * 2 // 3
    for _ in range(10):
        keeper.step()
        world.now += SETTLE_MS
    assert (len(world.stored().authorities), world.stored().facts.serving.signer) == (2, first)
    world.server.refused = {}
    for _ in range(4):
        keeper.step()
        schedulers.reconcile()
        world.now += SETTLE_MS
    assert world.stored().facts.serving.signer != first
    assert len(world.server.evicted) == 1


def test_pods_that_have_not_started_are_left_alone() -> None:
    world = World()
    keeper, _ = world.keeper(BOTH)
    world.server.started = {"gpu-scheduler-a": "", "gpu-scheduler-b": "yesterday"}
    for _ in range(3):
        keeper.step()
        world.now += SETTLE_MS
    assert world.server.evicted == []


# --- Agents of elastic pods.


def authorities(world: World) -> str:
    """What agents verify the endpoint with."""
    found: str = world.server.secrets[names.AGENTS_AUTHORITIES]["data"]["ca.crt"]
    return found


def test_the_authorities_are_published_for_agents_without_their_keys() -> None:
    world = World()
    keeper, served = world.keeper(CertificateUses(agents=True))
    keeper.step()
    assert authorities(world).encode() == world.stored().bundle
    assert "PRIVATE" not in str(world.server.secrets[names.AGENTS_AUTHORITIES])
    builder = verification.PolicyBuilder().store(
        verification.Store(x509.load_pem_x509_certificates(authorities(world).encode()))
    )
    host = x509.DNSName(service_names(names.AGENTS_SERVICE, "gpu-system")[0])
    verifier = builder.time(_datetime(time.gmtime(world.now // 1_000))).build_server_verifier(host)
    verifier.verify(x509.load_pem_x509_certificate(served[0].chain), [])
    writes = len(world.server.writes)
    keeper.step()
    assert len(world.server.writes) == writes


def test_authorities_that_somebody_changes_are_published_again() -> None:
    world = World()
    keeper, _ = world.keeper(CertificateUses(agents=True))
    keeper.step()
    world.server.secrets[names.AGENTS_AUTHORITIES]["data"] = {"ca.crt": "of a stranger"}
    keeper.step()
    assert authorities(world).encode() == world.stored().bundle
    del world.server.secrets[names.AGENTS_AUTHORITIES]
    keeper.step()
    assert authorities(world).encode() == world.stored().bundle


def test_a_replica_that_answers_no_agents_publishes_nothing_for_them() -> None:
    world = World()
    keeper, _ = world.keeper(BOTH)
    keeper.step()
    assert names.AGENTS_AUTHORITIES not in world.server.secrets


def test_a_new_authority_is_published_for_agents_before_it_signs() -> None:
    world = World()
    keeper, served = world.keeper(CertificateUses(agents=True))
    keeper.step()
    world.now += AUTHORITY_MS * 2 // 3
    keeper.step()
    assert authorities(world).count("BEGIN CERTIFICATE") == 2
    old, _ = x509.load_pem_x509_certificates(authorities(world).encode())
    x509.load_pem_x509_certificate(served[-1].chain).verify_directly_issued_by(old)
