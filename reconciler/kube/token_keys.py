"""The keys with which the API server signs tokens of ServiceAccounts, and the verification of signatures.

Any thread may verify. The keys are replaced as a whole.
"""

import binascii
from base64 import b64decode
from collections.abc import Mapping

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from reconciler.kube.api_server import Unreachable, Writer
from reconciler.kube.watch.changes import said
from reconciler.ports import Unavailable
from reconciler.protocol.agent_identity import SignedToken

PATH = "/openid/v1/jwks"
_ACCEPT = "application/jwk-set+json"  # the API server answers no other type
_HALF = 32  # bytes of a half of an ES256 signature

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey


class _WebKey(msgspec.Struct):
    kty: str
    kid: str = ""
    use: str = "sig"
    alg: str = ""
    n: str = ""
    e: str = ""
    crv: str = ""
    x: str = ""
    y: str = ""


class _WebKeys(msgspec.Struct):
    keys: tuple[_WebKey, ...]


class TokenKeys:
    """The public keys of the API server, by id."""

    def __init__(self, server: Writer) -> None:
        self._server = server
        self._keys: Mapping[str, PublicKey] = {}

    def read_again(self) -> None:
        """Waits for the API server. Raises Unavailable, and keeps the known keys."""
        try:
            answer = self._server.get(PATH, accept=_ACCEPT)
        except Unreachable as error:
            raise Unavailable(f"cannot read the keys of the API server: {error}") from error
        if answer.status != 200:
            raise Unavailable(f"cannot read the keys of the API server: {said(answer)}")
        try:
            read = msgspec.json.decode(answer.body, type=_WebKeys)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise Unavailable("cannot read the keys of the API server: the answer has no keys") from None
        found = {each.kid: key for each in read.keys if (key := _public_key(each)) is not None}
        self._keys = found

    def is_signed(self, token: SignedToken) -> bool | None:
        """Whether the API server signed the token; None if the key is not known."""
        key = self._keys.get(token.key)
        if key is None:
            return None
        try:
            return _verify(key, token)
        except InvalidSignature:
            return False


def _verify(key: PublicKey, token: SignedToken) -> bool:
    """The type of the key decides on the algorithm, not the token. Raises InvalidSignature."""
    if isinstance(key, rsa.RSAPublicKey):
        if token.algorithm != "RS256":
            return False
        key.verify(token.signature, token.signed, padding.PKCS1v15(), hashes.SHA256())
        return True
    if token.algorithm != "ES256" or len(token.signature) != 2 * _HALF:
        return False
    halves = (int.from_bytes(each, "big") for each in (token.signature[:_HALF], token.signature[_HALF:]))
    key.verify(encode_dss_signature(*halves), token.signed, ec.ECDSA(hashes.SHA256()))
    return True


def _public_key(key: _WebKey) -> PublicKey | None:
    """None if the key is for another use, or of another type."""
    if not key.kid or key.use != "sig":
        return None
    try:
        if key.kty == "RSA" and key.alg in {"", "RS256"}:
            return rsa.RSAPublicNumbers(_number(key.e), _number(key.n)).public_key()
        if key.kty == "EC" and key.crv == "P-256" and key.alg in {"", "ES256"}:
            return ec.EllipticCurvePublicNumbers(_number(key.x), _number(key.y), ec.SECP256R1()).public_key()
    except (ValueError, binascii.Error):
        return None
    return None


def _number(text: str) -> int:
    return int.from_bytes(b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True), "big")
