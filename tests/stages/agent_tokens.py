"""Tokens of ServiceAccounts as an API server signs them, with keys of tests, and an API server that serves the keys."""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from reconciler.kube.api_server import ApiRequest, ApiResponse, Unreachable
from reconciler.protocol.agent_identity import AUDIENCE

Claims = dict[str, Any]


def encoded(octets: bytes) -> str:
    return urlsafe_b64encode(octets).decode().rstrip("=")


def _number(number: int) -> str:
    return encoded(number.to_bytes(-(-number.bit_length() // 8), "big"))


class Signer:
    """A key of an API server: RSA, or of an elliptic curve."""

    def __init__(self, name: str = "key-1", *, is_elliptic: bool = False) -> None:
        self.name, self._rsa, self._ec = name, None, None
        if is_elliptic:
            self._ec = ec.generate_private_key(ec.SECP256R1())
        else:
            self._rsa = rsa.generate_private_key(65_537, 2_048)

    @property
    def algorithm(self) -> str:
        return "ES256" if self._ec is not None else "RS256"

    @property
    def web_key(self) -> dict[str, str]:
        head = {"use": "sig", "kid": self.name, "alg": self.algorithm}
        if self._ec is not None:
            point = self._ec.public_key().public_numbers()
            halves = {"x": encoded(point.x.to_bytes(32, "big")), "y": encoded(point.y.to_bytes(32, "big"))}
            return {**head, "kty": "EC", "crv": "P-256", **halves}
        assert self._rsa is not None
        numbers = self._rsa.public_key().public_numbers()
        return {**head, "kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}

    def sign(self, text: bytes) -> bytes:
        if self._ec is not None:
            halves = decode_dss_signature(self._ec.sign(text, ec.ECDSA(hashes.SHA256())))
            return b"".join(each.to_bytes(32, "big") for each in halves)
        assert self._rsa is not None
        return self._rsa.sign(text, padding.PKCS1v15(), hashes.SHA256())

    def token(self, claims: Claims, header: Mapping[str, Any] | None = None) -> str:
        head = {"alg": self.algorithm, "kid": self.name, **(header or {})}
        text = f"{encoded(json.dumps(head).encode())}.{encoded(json.dumps(claims).encode())}"
        return f"{text}.{encoded(self.sign(text.encode()))}"


def claims(
    pod: str = "a", uid: str = "uid-a", node: str = "n0", namespace: str = "team", account: str = "default", **more: Any
) -> Claims:
    """Of a projected token."""
    now = int(time.time())
    bound: dict[str, Any] = {"namespace": namespace, "serviceaccount": {"name": account, "uid": "u"}}
    bound |= {"pod": {"name": pod, "uid": uid}} if pod else {}
    bound |= {"node": {"name": node, "uid": f"uid-{node}"}} if node else {}
    times = {"exp": now + 3_600, "nbf": now, "iat": now}
    subject = f"system:serviceaccount:{namespace}:{account}"
    return {"aud": [AUDIENCE], "iss": "https://issuer", "sub": subject, **times, "kubernetes.io": bound, **more}


class KeyServer:
    """An API server that serves keys only; counts how often they were read."""

    def __init__(self, *signers: Signer) -> None:
        self.signers = signers
        self.reads = 0
        self.status = 200
        self.is_away = False

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = "") -> ApiResponse:
        assert path == "/openid/v1/jwks"
        self.reads += 1
        if accept != "application/jwk-set+json":
            return ApiResponse(406, b"406: Not Acceptable")
        if self.is_away:
            raise Unreachable("no route", "wait")
        return ApiResponse(self.status, json.dumps({"keys": [each.web_key for each in self.signers]}).encode())

    def send(self, request: ApiRequest) -> ApiResponse:
        raise AssertionError(request)
