"""Which tokens the API server has signed, by its own keys."""

import json
from typing import Any

import pytest

from reconciler.kube.api_server import ApiResponse
from reconciler.kube.token_keys import TokenKeys
from reconciler.ports import Unavailable
from reconciler.protocol.agent_identity import SignedToken, read_token
from tests.stages.agent_tokens import KeyServer, Signer, claims

RSA, CURVE, STRANGER = Signer("rsa"), Signer("curve", is_elliptic=True), Signer("rsa")


def keys(*signers: Signer) -> TokenKeys:
    found = TokenKeys(KeyServer(*signers))
    found.read_again()
    return found


def read(token: str) -> SignedToken:
    found = read_token(f"Bearer {token}")
    assert isinstance(found, SignedToken), found
    return found


@pytest.mark.parametrize("signer", [RSA, CURVE])
def test_a_token_is_verified_with_the_key_that_it_names(signer: Signer) -> None:
    assert keys(RSA, CURVE).is_signed(read(signer.token(claims()))) is True


def test_a_token_with_an_unknown_key_is_neither_signed_nor_forged() -> None:
    assert keys(CURVE).is_signed(read(RSA.token(claims()))) is None
    assert TokenKeys(KeyServer(RSA)).is_signed(read(RSA.token(claims()))) is None


FORGED: dict[str, str] = {
    "signed by another key of the same name": STRANGER.token(claims()),
    "RSA key, but HMAC by name": RSA.token(claims(), {"alg": "HS256"}),
    "RSA key, but no algorithm": RSA.token(claims(), {"alg": "none"}),
    "RSA key, but ES256 by name": RSA.token(claims(), {"alg": "ES256"}),
    "RSA key, but RS512 by name": RSA.token(claims(), {"alg": "RS512"}),
    "curve, but RS256 by name": CURVE.token(claims(), {"alg": "RS256"}),
    "the name of another key": RSA.token(claims(), {"kid": "curve", "alg": "ES256"}),
    "with one letter as a signature": RSA.token(claims()).rpartition(".")[0] + ".AA",
    "with half a signature": RSA.token(claims())[:-100],
    "with the signature of other claims": ".".join(
        (*RSA.token(claims(pod="b")).split(".")[:2], RSA.token(claims()).split(".")[2])
    ),
    "curve, with a signature of zeros": CURVE.token(claims()).rpartition(".")[0] + "." + "A" * 86,
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_token_is_not_signed(name: str) -> None:
    assert keys(RSA, CURVE).is_signed(read(FORGED[name])) is False


class Odd(KeyServer):
    def __init__(self, body: Any, status: int = 200) -> None:
        super().__init__()
        self._answer = ApiResponse(status, body if isinstance(body, bytes) else json.dumps(body).encode())

    def get(self, path: str, query: Any = None, accept: str = "") -> ApiResponse:
        return self._answer


@pytest.mark.parametrize("body", [b"", b"\xff", b"[" * 60_000, [], {}, {"keys": [{"kid": "a"}]}, {"keys": 1}])
def test_an_answer_without_keys_is_trouble(body: Any) -> None:
    with pytest.raises(Unavailable, match="cannot read the keys"):
        TokenKeys(Odd(body)).read_again()


def test_keys_that_cannot_be_used_are_ignored() -> None:
    odd = [
        {**RSA.web_key, "use": "enc", "kid": "1"},
        {**RSA.web_key, "n": "!", "kid": "2"},
        {**RSA.web_key, "n": "", "kid": "3"},
        {**CURVE.web_key, "crv": "P-384", "kid": "4"},
        {**CURVE.web_key, "x": "AAAA", "kid": "5"},
        {"kty": "oct", "kid": "6", "k": "AAAA"},
        {**RSA.web_key, "kid": ""},
    ]
    found = TokenKeys(Odd({"keys": [*odd, CURVE.web_key]}))
    found.read_again()
    assert found.is_signed(read(CURVE.token(claims()))) is True
    for number in range(1, 7):
        assert found.is_signed(read(RSA.token(claims(), {"kid": str(number)}))) is None


def test_known_keys_stay_while_the_api_server_is_away() -> None:
    server = KeyServer(RSA)
    found = TokenKeys(server)
    found.read_again()
    for server.is_away, server.status in ((True, 200), (False, 403)):
        with pytest.raises(Unavailable, match="cannot read the keys of the API server"):
            found.read_again()
        assert found.is_signed(read(RSA.token(claims()))) is True
    server.is_away, server.status, server.signers = False, 200, (CURVE,)
    found.read_again()
    assert found.is_signed(read(RSA.token(claims()))) is None
