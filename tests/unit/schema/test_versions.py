"""Documents of one version are read as another, and back without loss: the recipe, on a version that is made up."""

from typing import Any

import pytest
from hypothesis import given

from reconciler.policy.rules.kinds import NODE_PROVISIONER
from reconciler.schema.reference import CONVERSIONS, Conversion, Document, NoConversion, convert, readable
from tests.policies import specimens

HEADROOM = "gpu.scheduling/v2-headroom"


def to_v2(document: Document) -> Document:
    """In v2 the sizes stand together, a share is written 70%, and there is a headroom, which v1 has no field for."""
    spec = dict(document["spec"])
    size = {"min": spec.pop("minSize"), "max": spec.pop("maxSize")}
    if "minUnutilizedGPUNodes" in spec:
        size["unutilized"] = spec.pop("minUnutilizedGPUNodes")
    spec |= {"size": size, "minGPUUtilization": f"{spec.pop('minGPUUtilizationPercent')}%"}
    annotations = dict(document["metadata"].get("annotations", {}))
    if HEADROOM in annotations:
        spec["headroom"] = annotations.pop(HEADROOM)
    return {**document, "metadata": with_annotations(document["metadata"], annotations), "spec": spec}


def to_v1(document: Document) -> Document:
    spec = dict(document["spec"])
    size = spec.pop("size")
    names = {"min": "minSize", "max": "maxSize", "unutilized": "minUnutilizedGPUNodes"}
    spec |= {names[name]: value for name, value in size.items()}
    spec["minGPUUtilizationPercent"] = int(spec.pop("minGPUUtilization").removesuffix("%"))
    annotations = dict(document["metadata"].get("annotations", {}))
    if "headroom" in spec:
        annotations[HEADROOM] = spec.pop("headroom")
    return {**document, "metadata": with_annotations(document["metadata"], annotations), "spec": spec}


def with_annotations(metadata: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**rest, "annotations": annotations} if annotations else rest


def renamed(document: Document) -> Document:
    """In v3 the sizes are called limits."""
    document["spec"]["limits"] = document["spec"].pop("size")
    return document


KIND = "NodeProvisioner"
STEPS = (
    Conversion(KIND, "v1", "v2", to_v2),
    Conversion(KIND, "v2", "v1", to_v1),
    Conversion(KIND, "v2", "v3", renamed),
)


def document(version: str, spec: Any, **metadata: Any) -> Document:
    return {
        "apiVersion": f"gpu.scheduling/{version}",
        "kind": KIND,
        "metadata": {"name": "a100", **metadata},
        "spec": spec,
    }


V2 = document(
    "v2",
    {"poolName": "a100", "size": {"min": 8, "max": 16}, "minGPUUtilization": "70%", "headroom": "2 nodes"},
    labels={"team": "research"},
)


def test_a_newer_document_is_read_as_an_older_one() -> None:
    assert convert(V2, STEPS, "v1") == document(
        "v1",
        {"poolName": "a100", "minSize": 8, "maxSize": 16, "minGPUUtilizationPercent": 70},
        labels={"team": "research"},
        annotations={HEADROOM: "2 nodes"},
    )


def test_there_and_back_again_loses_nothing() -> None:
    assert convert(convert(V2, STEPS, "v1"), STEPS, "v2") == V2


@given(specimens.allowed(NODE_PROVISIONER.shape))
def test_whatever_v1_can_say_comes_back_from_v2(spec: Any) -> None:
    one = document("v1", spec)
    assert convert(convert(one, STEPS, "v2"), STEPS, "v1") == one


def test_steps_make_a_chain() -> None:
    one = document("v1", {"poolName": "a100", "minSize": 1, "maxSize": 2, "minGPUUtilizationPercent": 70})
    converted = convert(one, STEPS, "v3")
    assert converted["apiVersion"] == "gpu.scheduling/v3"
    assert converted["spec"]["limits"] == {"min": 1, "max": 2}


def test_the_document_that_is_converted_stays_as_it_was() -> None:
    """Even where a conversion changes what it is given."""
    convert(V2, STEPS, "v3")
    assert V2["spec"]["size"] == {"min": 8, "max": 16}


def test_a_document_of_the_version_that_is_wanted_is_left_alone() -> None:
    assert convert(V2, (), "v2") == V2


@pytest.mark.parametrize(("version", "target"), [("v3", "v1"), ("v9", "v1"), ("v1", "v9")])
def test_where_no_chain_leads_it_says_what_can_be_read(version: str, target: str) -> None:
    with pytest.raises(
        NoConversion, match=f"{KIND} cannot be converted from version {version} to {target}: write it in "
    ):
        convert(document(version, {}), STEPS, target)


def test_another_kind_s_conversions_are_not_taken() -> None:
    with pytest.raises(NoConversion):
        convert({**V2, "kind": "DrainPolicy"}, STEPS, "v1")


def test_the_versions_that_can_be_read_are_those_a_chain_leads_from() -> None:
    assert readable(KIND, STEPS, "v1") == ("v1", "v2")
    assert readable(KIND, STEPS, "v3") == ("v1", "v2", "v3")
    assert readable("DrainPolicy", STEPS, "v1") == ("v1",)


def test_every_conversion_has_one_back() -> None:
    """A cluster that was upgraded can be put back."""
    ways = {(step.kind, step.from_version, step.to_version) for step in CONVERSIONS}
    assert all((kind, there, here) in ways for kind, here, there in ways)
