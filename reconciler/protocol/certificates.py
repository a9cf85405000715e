"""When certificate authorities, serving certificates and client certificates are made and removed, and for which names.

Theory of operation. The API server verifies the webhook with the authorities in the caBundle of the configuration; the
scheduler verifies the extender with the authorities in its Secret, and is verified with those of the replicas. A new
authority is published beside the old one in all these places, and signs nothing until it has been published for a
while. Then it signs the next serving certificate and the next client certificate, and when both have been in use for a
while, the old authority is removed. So at each moment all certificates in use are signed by an authority that every
verifier knows. All are renewed at two thirds of their lifetime; a certificate never outlives its authority.

kube-scheduler reads its authorities when it starts, and never again: an authority signs nothing while a pod of the
scheduler is older, and these pods are replaced one by one.

Every replica computes these steps from the stored certificates and the time, and stores the result with the version
that it read. The replica that comes second reads what the first one stored.
"""

from collections.abc import Mapping, Sequence

import msgspec

from reconciler.model.instant import Instant

AUTHORITY_MS = 365 * 86_400_000
SERVING_MS = 30 * 86_400_000  # also of a client certificate
SETTLE_MS = 10 * 60_000  # until all replicas and API servers use what is stored and published
MOUNT_MS = 2 * 60_000  # until kubelets mount what is stored into new pods
BACKDATE_MS = 3_600_000  # certificates begin earlier, for API servers whose clocks are behind


class AuthorityFacts(msgspec.Struct, frozen=True):
    """A stored certificate authority."""

    fingerprint: str
    begins: Instant
    ends: Instant


class IssuedFacts(msgspec.Struct, frozen=True):
    """A stored certificate of a server or of a client."""

    signer: str  # fingerprint of the authority; empty if none of the stored ones
    names: tuple[str, ...]  # sorted; of a client, its common name
    begins: Instant
    ends: Instant


class StoredCertificates(msgspec.Struct, frozen=True):
    """All stored certificates."""

    authorities: tuple[AuthorityFacts, ...] = ()  # in order of creation
    serving: IssuedFacts | None = None


class SchedulerFacts(msgspec.Struct, frozen=True):
    """The Secret of the scheduler."""

    published: frozenset[str] = frozenset()  # fingerprints of its authorities
    client: IssuedFacts | None = None
    outdated: tuple[str, ...] = ()  # pods that do not know the newest authority, because they started earlier


class CertificateSteps(msgspec.Struct, frozen=True):
    """Changes of the stored certificates, in the order of the fields."""

    removed: frozenset[str] = frozenset()  # fingerprints of authorities
    makes_authority: bool = False
    signs: bool = False  # a new serving certificate
    signer: str = ""  # its authority; empty: the authority that is made

    @property
    def is_nothing(self) -> bool:
        return not (self.removed or self.makes_authority or self.signs)


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """The names by which an API server connects to a Service."""
    return tuple(sorted((f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local")))


def next_steps(
    stored: StoredCertificates,
    names: tuple[str, ...],
    published: frozenset[str] | None,
    now: Instant,
    scheduler: SchedulerFacts | None = None,
) -> CertificateSteps:
    """The steps that are due. `published`: authorities that every API server knows; None if there is no configuration.
    `scheduler`: None if there is no extender."""
    valid = _valid(stored, now)
    unusable = {each.fingerprint for each in stored.authorities} - {each.fingerprint for each in valid}
    if not valid:
        return CertificateSteps(frozenset(unusable), makes_authority=True, signs=True)
    signer = _signer(valid, known_authorities(published, scheduler), now)
    signs = _is_due(stored.serving, valid, signer, names, now)
    in_use = [stored.serving, *([scheduler.client] if scheduler is not None else [])]
    removed = unusable if signs else unusable | _replaced(in_use, valid, now)
    return CertificateSteps(frozenset(removed), now >= _renewed_at(valid[-1]), signs, signer if signs else "")


def client_signer(
    stored: StoredCertificates, name: str, published: frozenset[str] | None, now: Instant, scheduler: SchedulerFacts
) -> str:
    """Fingerprint of the authority that signs a new client certificate now; empty if none is due."""
    valid = _valid(stored, now)
    if not valid:
        return ""
    signer = _signer(valid, known_authorities(published, scheduler), now)
    return signer if _is_due(scheduler.client, valid, signer, (name,), now) else ""


def known_authorities(published: frozenset[str] | None, scheduler: SchedulerFacts | None) -> frozenset[str] | None:
    """Authorities that every verifier knows; None if there is none."""
    if scheduler is None:
        return published
    return scheduler.published if published is None else published & scheduler.published


def with_pods(
    scheduler: SchedulerFacts, stored: StoredCertificates, started: Mapping[str, Instant], now: Instant
) -> SchedulerFacts:
    """Adds the pods of the scheduler, by the time of their start. For a while, kubelets may mount a Secret as it was
    before; but no pod starts before there is a Secret at all."""
    valid = _valid(stored, now)
    if not valid:
        return scheduler
    newest = valid[-1]
    known_at = newest.begins + BACKDATE_MS + (MOUNT_MS if len(valid) > 1 else 0)
    outdated = tuple(sorted(name for name, begins in started.items() if begins < known_at <= now))
    published = scheduler.published - {newest.fingerprint} if outdated else scheduler.published
    return SchedulerFacts(published, scheduler.client, outdated)


def _valid(stored: StoredCertificates, now: Instant) -> list[AuthorityFacts]:
    return [each for each in stored.authorities if each.begins <= now < each.ends]


def _signer(valid: Sequence[AuthorityFacts], published: frozenset[str] | None, now: Instant) -> str:
    """The newest authority that every API server knows; if there is none, the oldest one."""
    for each in reversed(valid):
        is_known = published is None or each.fingerprint in published
        if is_known and now - each.begins >= BACKDATE_MS + SETTLE_MS:
            return each.fingerprint
    return valid[0].fingerprint


def _is_due(
    issued: IssuedFacts | None, valid: Sequence[AuthorityFacts], signer: str, names: tuple[str, ...], now: Instant
) -> bool:
    order = [each.fingerprint for each in valid]
    if issued is None or issued.signer not in order or issued.names != names:
        return True
    is_of_older = order.index(issued.signer) < order.index(signer)
    return is_of_older or issued.begins > now or now >= _renewed_at(issued)


def _replaced(in_use: Sequence[IssuedFacts | None], valid: Sequence[AuthorityFacts], now: Instant) -> set[str]:
    """Authorities older than those of all certificates in use, once these are used everywhere."""
    order = [each.fingerprint for each in valid]
    signers = []
    for issued in in_use:
        if issued is None or issued.signer not in order or now - issued.begins < BACKDATE_MS + SETTLE_MS:
            return set()
        signers.append(order.index(issued.signer))
    return set(order[: min(signers)])


def _renewed_at(certificate: AuthorityFacts | IssuedFacts) -> Instant:
    return Instant(certificate.begins + (certificate.ends - certificate.begins) * 2 // 3)
