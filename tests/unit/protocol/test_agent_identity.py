"""Whose token it is, and for which pods its bearer may ask."""

import json
import time
from typing import Any

import pytest

from reconciler.model.instant import Instant
from reconciler.protocol.agent_identity import (
    AgentIdentity,
    AgentsAccount,
    SignedToken,
    read_identity,
    read_token,
    why_no_state,
    why_not_for,
)
from reconciler.protocol.asks import PodName, Refusal
from tests.stages.agent_tokens import Signer, claims, encoded

SIGNER = Signer(is_elliptic=True)
AGENTS = AgentsAccount("gpu-agents", "reconciler-agent")
NOW = Instant(int(time.time() * 1_000))


def identity(**fields: Any) -> AgentIdentity | Refusal:
    return read_identity(json.dumps(claims(**{"nbf": NOW // 1_000, **fields})).encode(), NOW)


def test_a_token_is_split_as_it_was_signed() -> None:
    token = SIGNER.token(claims())
    for scheme in ("Bearer", "bearer", "BEARER"):
        found = read_token(f" {scheme}  {token} ")
        assert isinstance(found, SignedToken)
        assert (found.algorithm, found.key, found.signed) == ("ES256", "key-1", token.rpartition(".")[0].encode())


NO_TOKENS = {
    "nothing": "",
    "a scheme": "Bearer",
    "another scheme": "Basic YTpi",
    "a token without a scheme": SIGNER.token(claims()),
    "no web token": "Bearer opaque",
    "two parts": "Bearer a.b",
    "four parts": f"Bearer {SIGNER.token(claims())}.x",
    "padding": f"Bearer {SIGNER.token(claims())}=",
    "letters outside of the alphabet": f"Bearer {SIGNER.token(claims())[:-2]}+/",
    "letters outside of ASCII": f"Bearer é{SIGNER.token(claims())}",
    "too many letters": f"Bearer {SIGNER.token({**claims(), 'x': 'x' * 9_000})}",
    "a header that is no object": f"Bearer {encoded(b'[]')}.e30.e30",
    "a header of brackets": f"Bearer {encoded(b'[' * 5_000)}.e30.e30",
    "a header without a key": f"Bearer {encoded(json.dumps({'alg': 'RS256'}).encode())}.e30.e30",
    "a critical extension": f"Bearer {SIGNER.token(claims(), {'crit': ['exp']})}",
}


@pytest.mark.parametrize("name", NO_TOKENS)
def test_what_is_no_token_is_refused_with_a_sentence(name: str) -> None:
    found = read_token(NO_TOKENS[name])
    assert isinstance(found, Refusal)
    assert found.status == 401
    assert "reconciler-agents" in found.sentence


BAD_CLAIMS: dict[str, tuple[dict[str, Any], str]] = {
    "another audience": ({"aud": ["https://kubernetes.default.svc"]}, "another audience"),
    "another audience as a text": ({"aud": "reconciler"}, "another audience"),
    "no audience": ({"aud": []}, "another audience"),
    "expired": ({"exp": NOW // 1_000}, "expired"),
    "expired long ago": ({"exp": -(2**62)}, "expired"),
    "expires never": ({"exp": 2**62}, "expired"),
    "not valid yet": ({"nbf": NOW // 1_000 + 60}, "not valid yet"),
    "no end": ({"exp": None}, "not bound to a ServiceAccount"),
    "an end as a text": ({"exp": "9999999999"}, "not bound to a ServiceAccount"),
    "no beginning": ({"nbf": None}, "not bound to a ServiceAccount"),
    "of another issuer, such as a person": ({"kubernetes.io": None}, "not bound to a ServiceAccount"),
    "without an account": ({"kubernetes.io": {"namespace": "team"}}, "not bound to a ServiceAccount"),
    "with a pod that is no object": (
        {"kubernetes.io": {"namespace": "team", "serviceaccount": {"name": "a"}, "pod": "a"}},
        "not bound to a ServiceAccount",
    ),
}


@pytest.mark.parametrize("name", BAD_CLAIMS)
def test_claims_that_prove_nothing_are_refused(name: str) -> None:
    fields, part = BAD_CLAIMS[name]
    found = identity(**fields)
    assert isinstance(found, Refusal)
    assert found.status == 401
    assert part in found.sentence


@pytest.mark.parametrize("octets", [b"", b"\xff", b"[]", b"1", b"[" * 60_000])
def test_claims_that_cannot_be_read_are_refused(octets: bytes) -> None:
    assert isinstance(read_identity(octets, NOW), Refusal)


def test_the_claims_name_the_pod_the_node_and_the_account() -> None:
    assert identity(aud="reconciler-agents") == identity(nbf=NOW // 1_000 + 9) == identity()
    assert identity() == AgentIdentity(AgentsAccount("team", "default"), PodName("team", "a"), "uid-a", "n0")


OWN = identity()
AGENT = identity(pod="agent-0", namespace=AGENTS.namespace, account=AGENTS.name)
# identity, pod, its node, account of the agents of nodes; what the refusal says
ASKS: dict[str, tuple[Any, PodName, str, AgentsAccount | None, str]] = {
    "its own pod": (OWN, PodName("team", "a"), "n0", None, ""),
    "its own pod, which is unknown": (OWN, PodName("team", "a"), "", None, ""),
    "another pod": (OWN, PodName("team", "b"), "n0", AGENTS, "not that of Pod/team/b"),
    "an unknown pod": (OWN, PodName("team", "b"), "", AGENTS, "not that of Pod/team/b"),
    "the same name in another namespace": (OWN, PodName("other", "a"), "n0", AGENTS, "not that of Pod/other/a"),
    "a token of no pod": (identity(pod=""), PodName("team", "a"), "n0", None, "not that of Pod/team/a"),
    "a token of a pod without a uid": (identity(uid=""), PodName("team", "a"), "n0", None, "not that of Pod/team/a"),
    "a pod on the node of the agent": (AGENT, PodName("team", "a"), "n0", AGENTS, ""),
    "an unknown pod, for the agent": (AGENT, PodName("team", "a"), "", AGENTS, ""),
    "a pod on another node": (AGENT, PodName("team", "a"), "n1", AGENTS, "not on Node/n0"),
    "agents of nodes, if there are none": (AGENT, PodName("team", "a"), "n0", None, "not that of Pod/team/a"),
    "the account of agents in another namespace": (
        identity(pod="agent-0", account=AGENTS.name),
        PodName("team", "a"),
        "n0",
        AGENTS,
        "not that of Pod/team/a",
    ),
    "an agent whose token names no node": (
        identity(pod="agent-0", node="", namespace=AGENTS.namespace, account=AGENTS.name),
        PodName("team", "a"),
        "n0",
        AGENTS,
        "names no node",
    ),
}


@pytest.mark.parametrize("name", ASKS)
def test_an_agent_asks_for_its_own_pod_or_for_the_pods_of_its_node(name: str) -> None:
    bearer, pod, node, account, part = ASKS[name]
    found = why_not_for(bearer, pod, node, account)
    assert (found is None) is (part == "")
    assert found is None or (found.status == 403 and part in found.sentence)


def test_only_the_account_of_agents_reads_the_state() -> None:
    assert isinstance(OWN, AgentIdentity)
    assert isinstance(AGENT, AgentIdentity)
    assert why_no_state(AGENT, AGENTS) is None
    for bearer, account in ((OWN, AGENTS), (AGENT, None)):
        found = why_no_state(bearer, account)
        assert found is not None
        assert found.status == 403
