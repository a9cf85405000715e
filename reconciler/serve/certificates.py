"""Makes and reads the certificates of the webhook, of the extender, and of its client, the scheduler.

They have an authority of their own. No message shows a private key.
"""

import datetime
from collections.abc import Mapping, Sequence

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from reconciler.model.instant import Instant
from reconciler.protocol.certificates import (
    AUTHORITY_MS,
    BACKDATE_MS,
    SERVING_MS,
    AuthorityFacts,
    CertificateSteps,
    IssuedFacts,
    SchedulerFacts,
    StoredCertificates,
)
from reconciler.serve.tls import CertificatePair

# Keys of the Secret, as cert-manager names them.
AUTHORITIES, AUTHORITY_KEYS, CHAIN, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
_TITLE = "reconciler"
_END_OF_KEY = b"-----END PRIVATE KEY-----\n"


class DamagedCertificates(ValueError):
    """The stored certificates cannot be read."""


class Authority(msgspec.Struct, frozen=True):
    """A certificate authority with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def facts(self) -> AuthorityFacts:
        return AuthorityFacts(fingerprint(self.certificate), _begins(self.certificate), _ends(self.certificate))


class Certificates(msgspec.Struct, frozen=True):
    """The content of the Secret."""

    authorities: tuple[Authority, ...] = ()  # in order of creation
    serving: CertificatePair | None = None

    @property
    def bundle(self) -> bytes:
        """All authorities, PEM: what API servers verify with."""
        return b"".join(_pem(each.certificate) for each in self.authorities)

    @property
    def facts(self) -> StoredCertificates:
        authorities = tuple(each.facts for each in self.authorities)
        return StoredCertificates(authorities, self._serving_facts())

    def _serving_facts(self) -> IssuedFacts | None:
        if self.serving is None:
            return None
        certificate = x509.load_pem_x509_certificate(self.serving.chain)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        listed = tuple(sorted(names.get_values_for_type(x509.DNSName)))
        return IssuedFacts(_signer(certificate, self.authorities), listed, _begins(certificate), _ends(certificate))


def read_certificates(content: Mapping[str, bytes]) -> Certificates:
    """Reads the content of the Secret. Raises DamagedCertificates."""
    if not content:
        return Certificates()
    try:
        certificates = x509.load_pem_x509_certificates(content[AUTHORITIES])
        blocks = content[AUTHORITY_KEYS].split(_END_OF_KEY)[:-1]
        keys = [_loaded_key(block + _END_OF_KEY) for block in blocks]
        authorities = tuple(Authority(*each) for each in zip(certificates, keys, strict=True))
        if any(each.certificate.public_key() != each.key.public_key() for each in authorities):
            raise DamagedCertificates("a key belongs to another certificate")
        serving = x509.load_pem_x509_certificate(content[CHAIN])
        if serving.public_key() != _loaded_key(content[KEY]).public_key():
            raise DamagedCertificates("a key belongs to another certificate")
        read = Certificates(authorities, CertificatePair(content[CHAIN], content[KEY]))
        read.facts  # noqa: B018 - refuses a certificate without names
    except (KeyError, TypeError, ValueError, x509.ExtensionNotFound) as fault:
        raise DamagedCertificates(f"{type(fault).__name__} in the stored certificates") from None
    return read


def written_certificates(certificates: Certificates) -> dict[str, bytes]:
    """The content of the Secret."""
    serving = certificates.serving
    return {
        AUTHORITIES: certificates.bundle,
        AUTHORITY_KEYS: b"".join(_key_pem(each.key) for each in certificates.authorities),
        CHAIN: serving.chain if serving else b"",
        KEY: serving.key if serving else b"",
    }


def apply_steps(
    certificates: Certificates, steps: CertificateSteps, names: tuple[str, ...], now: Instant
) -> Certificates:
    """The certificates after the steps."""
    authorities = [each for each in certificates.authorities if each.facts.fingerprint not in steps.removed]
    if steps.makes_authority:
        authorities.append(_made_authority(now))
    serving = certificates.serving
    if steps.signs:
        named = (each for each in authorities if each.facts.fingerprint == steps.signer)
        serving = _server_certificate(next(named, authorities[-1]), names, now)
    return Certificates(tuple(authorities), serving)


# --- The Secret of the scheduler: a client certificate, and all authorities, without their keys.


def read_scheduler_secret(content: Mapping[str, bytes], authorities: Sequence[Authority]) -> SchedulerFacts:
    """A certificate that cannot be read or used counts as absent."""
    published = fingerprints(content.get(AUTHORITIES, b""))
    try:
        certificate = x509.load_pem_x509_certificate(content[CHAIN])
        if certificate.public_key() != _loaded_key(content[KEY]).public_key():
            return SchedulerFacts(published)
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        if ExtendedKeyUsageOID.CLIENT_AUTH not in usages:
            return SchedulerFacts(published)
        subject = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except (KeyError, TypeError, ValueError, x509.ExtensionNotFound):
        return SchedulerFacts(published)
    common_names = tuple(sorted(str(each.value) for each in subject))
    signer = _signer(certificate, authorities)
    return SchedulerFacts(published, IssuedFacts(signer, common_names, _begins(certificate), _ends(certificate)))


def written_scheduler_secret(
    content: Mapping[str, bytes], certificates: Certificates, signer: str, name: str, now: Instant
) -> dict[str, bytes]:
    """The content with all authorities, and with a new certificate for `name` if an authority signs one."""
    chain, key = content.get(CHAIN, b""), content.get(KEY, b"")
    for authority in certificates.authorities:
        if authority.facts.fingerprint == signer:
            client = _issued(authority, name, now, [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])])
            chain, key = client.chain, client.key
    return {AUTHORITIES: certificates.bundle, CHAIN: chain, KEY: key}


def fingerprints(bundle: bytes) -> frozenset[str]:
    """Fingerprints of the authorities in a bundle; none if the bundle cannot be read."""
    try:
        return frozenset(fingerprint(each) for each in x509.load_pem_x509_certificates(bundle))
    except ValueError:
        return frozenset()


def fingerprint(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex()


# --- Certificates. Elliptic curves, because keys are made in the process that serves: RSA keys take up to a second.


def _made_authority(now: Instant) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    # Authorities of the same name would be mixed up by verifiers that search by name.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{_TITLE} {now}")])
    usage = _usage(signs=True)
    builder = (
        _started(name, name, key, (now - BACKDATE_MS, now + AUTHORITY_MS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    return Authority(builder.sign(key, hashes.SHA256()), key)


def _server_certificate(authority: Authority, names: tuple[str, ...], now: Instant) -> CertificatePair:
    alternatives = x509.SubjectAlternativeName([x509.DNSName(each) for each in names])
    return _issued(authority, _TITLE, now, [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), alternatives])


def _issued(
    authority: Authority, common_name: str, now: Instant, extensions: Sequence[x509.ExtensionType]
) -> CertificatePair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    ends = min(now + SERVING_MS, _ends(authority.certificate))
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = (
        _started(subject, authority.certificate.subject, key, (now - BACKDATE_MS, ends))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(issuer_key, critical=False)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return CertificatePair(_pem(builder.sign(authority.key, hashes.SHA256())), _key_pem(key))


def _started(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lifetime_ms: tuple[int, int]
) -> x509.CertificateBuilder:
    begins, ends = (datetime.datetime.fromtimestamp(each // 1_000, datetime.UTC) for each in lifetime_ms)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _signer(certificate: x509.Certificate, authorities: Sequence[Authority]) -> str:
    """Fingerprint of the authority; empty if none of these."""
    return next((fingerprint(each.certificate) for each in authorities if _signed(certificate, each)), "")


def _signed(certificate: x509.Certificate, authority: Authority) -> bool:
    try:
        certificate.verify_directly_issued_by(authority.certificate)
    except Exception:  # noqa: BLE001 - the library raises several types; none of them is a signature
        return False
    return True


def _loaded_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise DamagedCertificates("a key of another type")
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _begins(certificate: x509.Certificate) -> Instant:
    return Instant(int(certificate.not_valid_before_utc.timestamp()) * 1_000)


def _ends(certificate: x509.Certificate) -> Instant:
    return Instant(int(certificate.not_valid_after_utc.timestamp()) * 1_000)
