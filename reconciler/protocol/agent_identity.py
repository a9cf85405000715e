"""The identity of an agent: a token of a ServiceAccount for the audience of agents, and what its bearer may ask for.

The token is a JSON Web Token of the API server, bound to a pod or to a node. An agent may ask for its own pod. The
agent of a node may ask for all pods of its node; the account of such agents is named by an option of `run`. The
signature is verified elsewhere, with the keys of the API server.
"""

import binascii
import re
from base64 import urlsafe_b64decode
from typing import NamedTuple

import msgspec

from reconciler.model.instant import Instant
from reconciler.protocol.asks import PodName, Refusal

AUDIENCE = "reconciler-agents"
EARLY_MS = 10_000  # the clock of the API server may be ahead by this
_LONGEST = 8_192  # characters; the API server writes about 1,200
_MOST_SECONDS = 2**53
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")


class SignedToken(NamedTuple):
    """A token whose signature has not been verified."""

    algorithm: str
    key: str  # id of the key
    signed: bytes
    signature: bytes
    claims: bytes


class AgentsAccount(NamedTuple):
    """The ServiceAccount of the agents of nodes."""

    namespace: str
    name: str


class AgentIdentity(msgspec.Struct, frozen=True):
    """The bearer of a verified token."""

    account: AgentsAccount
    pod: PodName | None = None
    pod_uid: str = ""
    node: str = ""


class _Header(msgspec.Struct):
    alg: str
    kid: str
    crit: list[str] | None = None


class _Named(msgspec.Struct):
    name: str
    uid: str = ""


class _Bound(msgspec.Struct):
    namespace: str
    serviceaccount: _Named
    pod: _Named | None = None
    node: _Named | None = None


class _Claims(msgspec.Struct):
    aud: str | list[str]
    exp: int
    nbf: int
    bound: _Bound = msgspec.field(name="kubernetes.io")


def _unknown(why: str) -> Refusal:
    return Refusal(401, f"{why}: send a ServiceAccount token for the audience {AUDIENCE}")


NOT_SIGNED = _unknown("the token is not signed by the API server")


def read_token(authorization: str) -> SignedToken | Refusal:
    """The token of an Authorization header."""
    scheme, _, token = authorization.strip().partition(" ")
    if scheme.lower() != "bearer" or not token:
        return _unknown("the request has no bearer token")
    parts = token.strip().split(".")
    if len(token) > _LONGEST or len(parts) != 3:
        return _unknown("the bearer token is no JSON Web Token")
    try:
        header, claims, signature = (_decoded(part) for part in parts)
        read = msgspec.json.decode(header, type=_Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, binascii.Error, ValueError, RecursionError):
        return _unknown("the bearer token is no JSON Web Token")
    if read.crit is not None:
        return _unknown("the token has critical extensions")
    return SignedToken(read.alg, read.kid, f"{parts[0]}.{parts[1]}".encode(), signature, claims)


def read_identity(claims: bytes, now: Instant) -> AgentIdentity | Refusal:
    """The identity in the claims of a verified token."""
    try:
        read = msgspec.json.decode(claims, type=_Claims)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _unknown("the token is not bound to a ServiceAccount of Kubernetes")
    audiences = [read.aud] if isinstance(read.aud, str) else read.aud
    if AUDIENCE not in audiences:
        return _unknown("the token is for another audience")
    if not (abs(read.exp) < _MOST_SECONDS and abs(read.nbf) < _MOST_SECONDS) or now >= read.exp * 1_000:
        return _unknown("the token has expired")
    if now + EARLY_MS < read.nbf * 1_000:
        return _unknown("the token is not valid yet")
    bound = read.bound
    return AgentIdentity(
        AgentsAccount(bound.namespace, bound.serviceaccount.name),
        PodName(bound.namespace, bound.pod.name) if bound.pod is not None else None,
        bound.pod.uid if bound.pod is not None else "",
        bound.node.name if bound.node is not None else "",
    )


def is_own_pod(identity: AgentIdentity, pod: PodName) -> bool:
    """Whether the token is bound to a pod of this name; its uid must be compared too."""
    return identity.pod == pod and bool(identity.pod_uid)


def why_not_for(identity: AgentIdentity, pod: PodName, node: str, agents: AgentsAccount | None) -> Refusal | None:
    """Why the agent may not ask for a pod; None if it may. `node`: of the pod; empty if there is no such pod."""
    if is_own_pod(identity, pod):
        return None
    if agents is None or identity.account != agents:
        return Refusal(403, f"the token is not that of {pod}: an agent asks for its own pod")
    if not identity.node:
        return Refusal(403, "the token names no node: the agent of a node needs a token that is bound to its pod")
    if node and node != identity.node:
        return Refusal(403, f"{pod} is not on Node/{identity.node}: the agent of a node asks for the pods of its node")
    return None


def why_no_state(identity: AgentIdentity, agents: AgentsAccount | None) -> Refusal | None:
    """Why the bearer may not read all ledgers; None if it may."""
    if agents is not None and identity.account == agents:
        return None
    return Refusal(403, "only the account that `run --agents-account` names may read the state")


def _decoded(part: str) -> bytes:
    """Strict base64url without padding. Raises binascii.Error and ValueError."""
    if not _BASE64URL.fullmatch(part):
        raise ValueError("no base64url")
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))
