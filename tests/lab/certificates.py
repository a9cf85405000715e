"""The lab's own certificate authority: server and client certificates for everything that speaks TLS in it."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_LIFETIME = datetime.timedelta(days=3)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that lives as long as its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("reconciler lab", ())
        self.certificate = folder / "ca.crt"
        own = (
            self._started(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
        )
        self.certificate.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def server(self, name: str) -> Pair:
        """A certificate for a server on the loopback."""
        addresses = [x509.IPAddress(ipaddress.ip_address(each)) for each in ("127.0.0.1", "::1", "10.0.0.1")]
        names = x509.SubjectAlternativeName([*(x509.DNSName(each) for each in _SERVER_NAMES), *addresses])
        # Servers here are clients of one another too (etcd of itself, the API server of etcd).
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issue(name, _name(name, ()), [names, x509.ExtendedKeyUsage(usages)])

    def client(self, user: str, groups: tuple[str, ...] = ()) -> Pair:
        """A certificate that says to the API server: this is `user`, in `groups`."""
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._issue(user.replace(":", "-"), _name(user, groups), [usage])

    def signing_key(self, name: str) -> Pair:
        """A bare key pair, for service account tokens; the public half stands where a certificate would."""
        key = ec.generate_private_key(ec.SECP256R1())
        pair = Pair(self.folder / f"{name}.pub", self.folder / f"{name}.key")
        public = key.public_key()
        pair.certificate.write_bytes(
            public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        _write_key(pair.key, key)
        return pair

    def _issue(self, file: str, subject: x509.Name, extensions: list[x509.ExtensionType]) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        pair = Pair(self.folder / f"{file}.crt", self.folder / f"{file}.key")
        unsigned = self._started(subject, key.public_key()).add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        for extension in extensions:
            unsigned = unsigned.add_extension(extension, critical=False)
        pair.certificate.write_bytes(unsigned.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair

    def _started(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )


def _name(user: str, groups: tuple[str, ...]) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
            x509.NameAttribute(NameOID.COMMON_NAME, user),
        ]
    )


def _key_usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
