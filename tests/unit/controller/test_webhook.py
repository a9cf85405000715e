"""The certificates of the webhook are kept, renewed and published; claims are read as they are."""

import io
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509 import verification

from reconciler.controller.publishers import Log
from reconciler.controller.webhook import CLAIM_SECONDS, CertificateKeeper, ClaimLookup, SharedPolicies
from reconciler.kube.webhook_objects import WebhookObjects
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.volumes import DeviceClass, DeviceClassSpec
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.ports import Stale, Unavailable, Wished
from reconciler.protocol.admission.decision import Grounds
from reconciler.protocol.certificates import AUTHORITY_MS, SERVING_MS, SETTLE_MS, service_names
from reconciler.serve.certificates import AUTHORITIES, AUTHORITY_KEYS, CHAIN, KEY, fingerprints, read_certificates
from reconciler.serve.tls import ServingCertificate, TlsContext
from tests.unit.controller.webhook_server import CONFIGURATION, SECRETS, WebhookServer

START = 1_800_000_000_000


class World:
    """An API server, a clock, and keepers."""

    def __init__(self) -> None:
        self.server = WebhookServer()
        self.now = START
        self.log = io.StringIO()

    def keeper(self) -> tuple[CertificateKeeper, list[ServingCertificate]]:
        objects = WebhookObjects(self.server, "gpu-system")
        keeper = CertificateKeeper(objects, "gpu-system", Log(stream=self.log), lambda: Instant(self.now))
        served: list[ServingCertificate] = []
        keeper._hand = served.append  # noqa: SLF001 - steps without a thread
        return keeper, served

    def stored(self) -> Any:
        assert self.server.secret is not None
        objects = WebhookObjects(self.server, "gpu-system")
        return read_certificates(objects.read_secret().content)


def verified(certificate: ServingCertificate, bundle: bytes, now: int) -> bool:
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
    monkeypatch.setattr("reconciler.controller.webhook._AFTER_A_FAULT_SECONDS", 0.01)
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


# --- Claims.

DESIRED = Desired("a", "base")
SPEC = {"devices": {"count": 2}}


class Fixed:
    """A Policies."""

    def __init__(self, desired: Desired | None = DESIRED) -> None:
        self.desired = desired

    def wish(self, cluster_uid: str) -> Wished:
        return Wished(self.desired)


class Stopwatch:
    """A monotonic clock."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def lookup(
    server: WebhookServer, observed: Observed | None = None, watch: Stopwatch | None = None, is_read: bool = True
) -> ClaimLookup:
    policies = SharedPolicies(Fixed(), lambda: observed or Observed())
    if is_read:
        policies.wish("uid")
    return ClaimLookup(server, policies, watch or Stopwatch())


def test_a_claim_counts_as_soon_as_it_is_there_and_is_read_once_for_many_pods() -> None:
    server, watch = WebhookServer(), Stopwatch()
    found = lookup(server, watch=watch)
    assert found.grounds("team-a", "train") == Grounds(None, ())
    server.claims["team-a/train"] = {"spec": SPEC}
    assert [found.grounds("team-a", "train") for _ in range(5)] == [Grounds(SPEC, ())] * 5
    assert len(server.reads) == 2
    server.claims["team-a/train"] = {"spec": {"suspend": True}}
    watch.now += CLAIM_SECONDS
    assert found.grounds("team-a", "train") == Grounds({"suspend": True}, ())


@pytest.mark.parametrize(
    "claim", [{}, {"spec": None}, {"spec": []}, [], "x", {"spec": {"devices": None}}, {"spec": {"devices": [1]}}]
)
def test_a_claim_of_any_form_is_read(claim: Any) -> None:
    server = WebhookServer()
    server.claims["team-a/train"] = claim
    assert isinstance(lookup(server).grounds("team-a", "train"), Grounds)


def test_what_is_not_read_yet_is_told() -> None:
    server = WebhookServer()
    assert "policies" in str(lookup(server, is_read=False).grounds("team-a", "train"))
    unread = Observed(unread=(Unread("deviceclasses.resource.k8s.io", "the API server refuses"),))
    assert "deviceclasses" in str(lookup(server, unread).grounds("team-a", "train"))
    server.refused = {"/apis/gpu.scheduling": 403}
    assert "403" in str(lookup(server).grounds("team-a", "train"))
    server.is_away = True
    assert "cannot be reached" in str(lookup(server).grounds("team-a", "train"))
    assert isinstance(lookup(WebhookServer()).grounds("../..", "train"), str)


def test_the_first_device_class_that_maps_gpus_is_told() -> None:
    classes = [("b", "nvidia.com/gpu"), ("a", "nvidia.com/gpu"), ("0", "example.com/gpu"), ("1", "")]
    observed = Observed(
        device_classes=tuple(
            DeviceClass(Metadata(name=name), DeviceClassSpec(extended_resource_name=resource))
            for name, resource in classes
        )
    )
    found = lookup(WebhookServer(), observed).grounds("team-a", "train")
    assert isinstance(found, Grounds)
    assert found.device_class == "a"


def test_policies_that_are_refused_leave_the_last_good_ones() -> None:
    fixed = Fixed()
    policies = SharedPolicies(fixed, Observed)
    policies.wish("uid")
    fixed.desired = None
    policies.wish("uid")
    assert policies.last_seen is not None
    assert policies.last_seen.desired is DESIRED
