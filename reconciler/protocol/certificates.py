"""When certificate authorities and serving certificates are made and removed, and for which names.

Theory of operation. The API server verifies the webhook with the authorities in the caBundle of the configuration. A
new authority is published beside the old one, and signs nothing until the bundle with it has been published for a
while. Then it signs the next serving certificate, and when all replicas have served that for a while, the old authority
is removed. So at each moment all certificates in use are signed by an authority that every API server knows. Both are
renewed at two thirds of their lifetime; a serving certificate never outlives its authority.

Every replica computes these steps from the stored certificates and the time, and stores the result with the version
that it read. The replica that comes second reads what the first one stored.
"""

from collections.abc import Sequence

import msgspec

from reconciler.model.instant import Instant

AUTHORITY_MS = 365 * 86_400_000
SERVING_MS = 30 * 86_400_000
SETTLE_MS = 10 * 60_000  # until all replicas and API servers use what is stored and published
BACKDATE_MS = 3_600_000  # certificates begin earlier, for API servers whose clocks are behind


class AuthorityFacts(msgspec.Struct, frozen=True):
    """A stored certificate authority."""

    fingerprint: str
    begins: Instant
    ends: Instant


class ServingFacts(msgspec.Struct, frozen=True):
    """The stored serving certificate."""

    signer: str  # fingerprint of the authority; empty if none of the stored ones
    names: tuple[str, ...]  # sorted
    begins: Instant
    ends: Instant


class StoredCertificates(msgspec.Struct, frozen=True):
    """All stored certificates."""

    authorities: tuple[AuthorityFacts, ...] = ()  # in order of creation
    serving: ServingFacts | None = None


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
    stored: StoredCertificates, names: tuple[str, ...], published: frozenset[str] | None, now: Instant
) -> CertificateSteps:
    """The steps that are due. `published`: authorities in the caBundle; None if there is no configuration."""
    valid = [each for each in stored.authorities if each.begins <= now < each.ends]
    unusable = {each.fingerprint for each in stored.authorities} - {each.fingerprint for each in valid}
    if not valid:
        return CertificateSteps(frozenset(unusable), makes_authority=True, signs=True)
    signer = _signer(valid, published, now)
    signs = _is_due(stored.serving, valid, signer, names, now)
    removed = unusable if signs else unusable | _replaced(stored.serving, valid, now)
    return CertificateSteps(frozenset(removed), now >= _renewed_at(valid[-1]), signs, signer if signs else "")


def _signer(valid: Sequence[AuthorityFacts], published: frozenset[str] | None, now: Instant) -> str:
    """The newest authority that every API server knows; if there is none, the oldest one."""
    for each in reversed(valid):
        is_known = published is None or each.fingerprint in published
        if is_known and now - each.begins >= BACKDATE_MS + SETTLE_MS:
            return each.fingerprint
    return valid[0].fingerprint


def _is_due(
    serving: ServingFacts | None, valid: Sequence[AuthorityFacts], signer: str, names: tuple[str, ...], now: Instant
) -> bool:
    order = [each.fingerprint for each in valid]
    if serving is None or serving.signer not in order or serving.names != names:
        return True
    is_of_older = order.index(serving.signer) < order.index(signer)
    return is_of_older or serving.begins > now or now >= _renewed_at(serving)


def _replaced(serving: ServingFacts | None, valid: Sequence[AuthorityFacts], now: Instant) -> set[str]:
    """Authorities older than that of the serving certificate, once all replicas serve it."""
    if serving is None or now - serving.begins < BACKDATE_MS + SETTLE_MS:
        return set()
    order = [each.fingerprint for each in valid]
    return set(order[: order.index(serving.signer)])


def _renewed_at(certificate: AuthorityFacts | ServingFacts) -> Instant:
    return Instant(certificate.begins + (certificate.ends - certificate.begins) * 2 // 3)
