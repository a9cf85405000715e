"""At each moment, every API server knows the authority of every certificate that a replica serves."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.instant import Instant
from reconciler.protocol.certificates import (
    AUTHORITY_MS,
    BACKDATE_MS,
    MOUNT_MS,
    SERVING_MS,
    SETTLE_MS,
    AuthorityFacts,
    CertificateSteps,
    IssuedFacts,
    SchedulerFacts,
    StoredCertificates,
    client_signer,
    next_steps,
    service_names,
    with_pods,
)

NAMES = service_names("hook", "gpu-system")
DAY = 86_400_000
START = Instant(1_800_000_000_000)


def at(milliseconds: int) -> Instant:
    return Instant(START + milliseconds)


def authority(name: str, made: int) -> AuthorityFacts:
    return AuthorityFacts(name, at(made - BACKDATE_MS), at(made + AUTHORITY_MS))


def serving(signer: str, made: int, names: tuple[str, ...] = NAMES) -> IssuedFacts:
    return IssuedFacts(signer, names, at(made - BACKDATE_MS), at(made + SERVING_MS))


def applied(stored: StoredCertificates, steps: CertificateSteps, now: int) -> StoredCertificates:
    """As serve/certificates.py applies the steps."""
    authorities = [each for each in stored.authorities if each.fingerprint not in steps.removed]
    if steps.makes_authority:
        authorities.append(authority(f"ca-{now}", now))
    kept = stored.serving
    if steps.signs:
        kept = serving(steps.signer or authorities[-1].fingerprint, now)
    return StoredCertificates(tuple(authorities), kept)


def test_the_names_are_those_by_which_the_api_server_connects() -> None:
    assert NAMES == ("hook.gpu-system.svc", "hook.gpu-system.svc.cluster.local")


OLD, NEW = authority("old", 0), authority("new", AUTHORITY_MS * 2 // 3)
LATER = AUTHORITY_MS * 2 // 3
BOTH = frozenset({"old", "new"})
CASES: dict[str, tuple[StoredCertificates, frozenset[str] | None, int, CertificateSteps]] = {
    "without anything, both are made": (
        StoredCertificates(), None, 0, CertificateSteps(makes_authority=True, signs=True),
    ),
    "what is young is left alone": (
        StoredCertificates((OLD,), serving("old", 0)), frozenset({"old"}), DAY, CertificateSteps(),
    ),
    "a serving certificate is renewed at two thirds of its lifetime": (
        StoredCertificates((OLD,), serving("old", 0)), frozenset({"old"}), SERVING_MS * 2 // 3,
        CertificateSteps(signs=True, signer="old"),
    ),
    "a serving certificate for other names is renewed": (
        StoredCertificates((OLD,), serving("old", 0, ("other.gpu-system.svc",))), None, DAY,
        CertificateSteps(signs=True, signer="old"),
    ),
    "a serving certificate of another authority is renewed": (
        StoredCertificates((OLD,), serving("", 0)), None, DAY, CertificateSteps(signs=True, signer="old"),
    ),
    "an authority is made at two thirds of the lifetime of the last one, and signs nothing yet": (
        StoredCertificates((OLD,), serving("old", LATER - DAY)), frozenset({"old"}), LATER,
        CertificateSteps(makes_authority=True),
    ),
    "a new authority signs nothing while it is young": (
        StoredCertificates((OLD, NEW), serving("old", LATER - DAY)), BOTH, LATER + SETTLE_MS - 1, CertificateSteps(),
    ),
    "a new authority signs nothing while it is not published": (
        StoredCertificates((OLD, NEW), serving("old", LATER - DAY)), frozenset({"old"}), LATER + DAY,
        CertificateSteps(),
    ),
    "a published authority signs": (
        StoredCertificates((OLD, NEW), serving("old", LATER - DAY)), BOTH, LATER + SETTLE_MS,
        CertificateSteps(signs=True, signer="new"),
    ),
    "the old authority stays while replicas may serve its certificate": (
        StoredCertificates((OLD, NEW), serving("new", LATER + SETTLE_MS)), BOTH, LATER + 2 * SETTLE_MS - 1,
        CertificateSteps(),
    ),
    "the old authority is removed when all replicas serve the new certificate": (
        StoredCertificates((OLD, NEW), serving("new", LATER + SETTLE_MS)), BOTH, LATER + 2 * SETTLE_MS,
        CertificateSteps(frozenset({"old"})),
    ),
    "after a long pause, everything is made again": (
        StoredCertificates((OLD,), serving("old", 0)), frozenset({"old"}), AUTHORITY_MS,
        CertificateSteps(frozenset({"old"}), makes_authority=True, signs=True),
    ),
    "an authority from the future is replaced": (
        StoredCertificates((NEW,), serving("new", LATER)), None, 0,
        CertificateSteps(frozenset({"new"}), makes_authority=True, signs=True),
    ),
    "a serving certificate from the future is replaced": (
        StoredCertificates((OLD,), serving("old", 9 * DAY)), None, DAY, CertificateSteps(signs=True, signer="old"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_steps(name: str) -> None:
    stored, published, now, steps = CASES[name]
    assert next_steps(stored, NAMES, published, at(now)) == steps


def looks(draw: st.DrawFn) -> Iterator[int]:
    """Times at which a replica looks: mostly every 30 s, and sometimes after a pause."""
    now = 0
    for _ in range(draw(st.integers(20, 120))):
        yield now
        now += draw(st.sampled_from([30_000, 60_000, SETTLE_MS, DAY, 9 * DAY, 40 * DAY]))


@given(st.data())
def test_whenever_replicas_look_no_certificate_is_served_that_nobody_can_verify(data: st.DataObject) -> None:
    stored = StoredCertificates()
    published: frozenset[str] = frozenset()
    times = data.draw(st.composite(lambda draw: list(looks(draw)))())
    for now in times:
        before = stored.serving
        steps = next_steps(stored, NAMES, published, at(now))
        stored = applied(stored, steps, now)
        assert stored.serving is not None
        known = {each.fingerprint: each for each in stored.authorities}
        assert stored.serving.signer in known
        assert known[stored.serving.signer].begins <= at(now) < known[stored.serving.signer].ends
        if before is not None and before.signer != stored.serving.signer and before.signer in known:
            # The API servers know the signer of the new certificate before it is served.
            assert stored.serving.signer in published
        assert 1 <= len(stored.authorities) <= 3
        if data.draw(st.booleans()):  # the configuration may not be reachable
            published = frozenset(known)
    quiet = []
    for settled in range(times[-1] + SETTLE_MS, times[-1] + 7 * SETTLE_MS, SETTLE_MS):
        published = frozenset(each.fingerprint for each in stored.authorities)
        steps = next_steps(stored, NAMES, published, at(settled))
        quiet.append(steps.is_nothing)
        stored = applied(stored, steps, settled)
    assert any(quiet)


# --- The second scheduler.

CLIENT = "gpu-scheduler"
TWO = StoredCertificates((OLD, NEW), serving("new", LATER + SETTLE_MS))


def client(signer: str, made: int, name: str = CLIENT) -> IssuedFacts:
    return serving(signer, made, (name,))


def test_the_old_authority_stays_until_the_new_client_certificate_is_in_use() -> None:
    now = at(LATER + 3 * SETTLE_MS)
    cases: list[tuple[IssuedFacts | None, bool]] = [
        (None, False),
        (client("old", LATER), False),
        (client("", LATER), False),
        (client("new", LATER + 2 * SETTLE_MS + 1), False),
        (client("new", LATER + 2 * SETTLE_MS), True),
    ]
    for found, is_removed in cases:
        steps = next_steps(TWO, NAMES, BOTH, now, SchedulerFacts(BOTH, found))
        assert steps == (CertificateSteps(frozenset({"old"})) if is_removed else CertificateSteps()), found


SIGNERS: dict[str, tuple[StoredCertificates, SchedulerFacts, frozenset[str] | None, int, str]] = {
    "without an authority there is no client certificate": (StoredCertificates(), SchedulerFacts(), None, 0, ""),
    "the first one is signed at once": (StoredCertificates((OLD,)), SchedulerFacts(), None, 0, "old"),
    "a young one is left alone": (
        StoredCertificates((OLD,)), SchedulerFacts(frozenset({"old"}), client("old", 0)), None, DAY, "",
    ),
    "it is renewed at two thirds of its lifetime": (
        StoredCertificates((OLD,)), SchedulerFacts(frozenset({"old"}), client("old", 0)), None, 20 * DAY, "old",
    ),
    "one for another name is replaced": (
        StoredCertificates((OLD,)), SchedulerFacts(frozenset({"old"}), client("old", 0, "kube")), None, DAY, "old",
    ),
    "one of an unknown authority is replaced": (
        StoredCertificates((OLD,)), SchedulerFacts(frozenset({"old"}), client("", 0)), None, DAY, "old",
    ),
    "an authority that the API servers do not know signs nothing": (
        TWO, SchedulerFacts(BOTH, client("old", LATER)), frozenset({"old"}), LATER + DAY, "",
    ),
    "an authority that the Secret of the scheduler does not have signs nothing": (
        TWO, SchedulerFacts(frozenset({"old"}), client("old", LATER)), BOTH, LATER + DAY, "",
    ),
    "an authority that all know signs": (TWO, SchedulerFacts(BOTH, client("old", LATER)), BOTH, LATER + DAY, "new"),
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNERS)
def test_the_signer_of_a_client_certificate(name: str) -> None:
    stored, scheduler, published, now, signer = SIGNERS[name]
    assert client_signer(stored, CLIENT, published, at(now), scheduler) == signer


def test_pods_that_started_before_the_newest_authority_are_outdated_and_it_counts_as_unknown() -> None:
    started = {"a": at(LATER - DAY), "b": at(LATER + MOUNT_MS - 1), "c": at(LATER + MOUNT_MS)}
    scheduler = SchedulerFacts(BOTH, client("old", LATER))
    early = with_pods(scheduler, TWO, {"a": at(0)}, at(LATER + MOUNT_MS - 1))
    assert early == scheduler, "a kubelet may not have the new authority yet"
    late = with_pods(scheduler, TWO, started, at(LATER + SETTLE_MS))
    assert (late.outdated, late.published) == (("a", "b"), frozenset({"old"}))
    only = StoredCertificates((OLD,))
    assert with_pods(scheduler, only, {"a": at(0)}, at(DAY)).outdated == ()
    assert with_pods(scheduler, only, {"a": at(-1)}, at(DAY)).outdated == ("a",)
