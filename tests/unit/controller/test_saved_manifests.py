"""Manifests of a saved plan are held to what templates are held to: whoever forges the file gains nothing by them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import pytest

from reconciler.controller.policies import Origins, check, saved_problems
from reconciler.model.desired import Desired, Manifest
from tests import folders

REPOSITORY = folders.REPOSITORY
Change = Callable[[Any], Any]


@cache
def wish() -> Desired:
    resolved = check(Origins((REPOSITORY / "policies",))).resolved
    assert not resolved.problems
    return next(each for each in resolved.wishes if each.environment == "prod")


def with_body(change: Callable[[dict[str, Any]], None], kind: str = "NodePool") -> Desired:
    manifests = list(wish().manifests)
    at = next(number for number, each in enumerate(manifests) if each.kind == kind)
    body = msgspec.json.decode(manifests[at].body)
    change(body)
    manifests[at] = msgspec.structs.replace(manifests[at], body=msgspec.json.encode(body, order="sorted").decode())
    return msgspec.structs.replace(wish(), manifests=tuple(manifests))


def with_manifest(manifest: Manifest) -> Desired:
    return msgspec.structs.replace(wish(), manifests=(*wish().manifests, manifest))


def of(kind: str, api_version: str, pool: str, **more: Any) -> Manifest:
    first = wish().manifests[0]
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **more}
    text = msgspec.json.encode(body, order="sorted").decode()
    return msgspec.structs.replace(first, kind=kind, namespace="", name="x", body=text, pool=pool)


def told(of_file: Desired) -> str:
    return "\n".join(each.sentence for each in saved_problems(of_file))


def test_what_templates_yielded_passes_in_every_environment() -> None:
    for each in check(Origins((REPOSITORY / "policies",))).resolved.wishes:
        assert each.manifests
        assert each.smart_pods
        assert saved_problems(each) == []


@pytest.mark.parametrize(
    ("forged", "sentence"),
    [
        (lambda: with_body(lambda body: body["spec"].pop("template")), "spec"),
        (lambda: with_body(lambda body: body.update(apiVersion="rbac.authorization.k8s.io/v1")), "apiVersion"),
        (lambda: with_body(lambda body: body.update(secret="x")), "is not a field of NodePool"),
        (lambda: with_body(lambda body: body["metadata"].update(finalizers=["x"])), "finalizers may not be set"),
        (lambda: with_body(lambda body: body["metadata"].update(name="../x")), "lower case letters"),
        (lambda: with_body(lambda body: body.pop("spec")), "spec must be a map"),
        (
            lambda: with_body(lambda body: body["spec"].update(disruption={"consolidateAfter": "0s"})),
            "lets Karpenter consolidate",
        ),
        (lambda: with_body(lambda body: body.update(value=1_000_000), "PriorityClass"), "belongs to no pool"),
        (lambda: with_body(lambda body: body.update(globalDefault=True), "PriorityClass"), "belongs to no pool"),
        (
            lambda: with_manifest(of("ClusterRoleBinding", "rbac.authorization.k8s.io/v1", "a100-training")),
            "which templates may not render",
        ),
        (lambda: with_manifest(of("PriorityClass", "scheduling.k8s.io/v1", "", value=1)), "belongs to no pool"),
        (lambda: with_manifest(of("NodePool", "karpenter.sh/v1", "gone", spec={})), "belongs to no pool"),
        (lambda: with_manifest(wish().manifests[0]), "is rendered for"),
    ],
)
def test_a_forged_manifest_is_refused(forged: Callable[[], Desired], sentence: str) -> None:
    assert sentence in told(forged())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda body: body.update(kind="Secret"), "which templates may not render"),
        (lambda body: body["metadata"].update(namespace="kube-system"), "metadata.namespace"),
        (lambda body: body["metadata"]["labels"].clear(), "metadata.labels"),
        (lambda body: body["spec"].update(containers=[]), "spec.containers"),
    ],
)
def test_a_forged_smart_pod_is_refused(change: Callable[[dict[str, Any]], None], sentence: str) -> None:
    first = wish().smart_pods[0]
    body = msgspec.json.decode(first.body)
    change(body)
    pod = msgspec.structs.replace(first, body=msgspec.json.encode(body).decode())
    assert sentence in told(msgspec.structs.replace(wish(), smart_pods=(pod, *wish().smart_pods[1:])))


def test_a_smart_pod_that_is_not_asked_for_is_refused() -> None:
    twice = (*wish().smart_pods, wish().smart_pods[0])
    assert "is unexpected or duplicated" in told(msgspec.structs.replace(wish(), smart_pods=twice))


def test_a_body_that_cannot_be_read_is_refused() -> None:
    broken = msgspec.structs.replace(wish().manifests[0], body="[" * 100_000)
    assert "must be a map" in told(msgspec.structs.replace(wish(), manifests=(broken, *wish().manifests[1:]))) or (
        "belongs to no pool" in told(msgspec.structs.replace(wish(), manifests=(broken, *wish().manifests[1:])))
    )
