"""A real API server takes the definitions of the kinds, fills in our defaults, and refuses what we would refuse."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from jsonschema import Draft7Validator

from reconciler.model import names
from reconciler.model.desired import Declared, Desired
from reconciler.policy.custom_resources import custom_resources
from reconciler.policy.document import read_head
from reconciler.policy.json_schema import schema_of
from reconciler.policy.read import read_spec
from reconciler.policy.rules.kinds import GPU_NODE_STATUS, KINDS, NODE_PROVISIONER, kind_named, own_problems
from reconciler.policy.shape import API_VERSION, Kind, ListOf, MapOf, Object, Shape, plainly
from reconciler.policy.tree import Mapping, Mark, Node, plain
from reconciler.policy.yaml import read
from reconciler.schema.crd import CATEGORY, crd_name
from tests.lab.api import Answer, Manifest, Refused
from tests.lab.lab import Lab
from tests.lab.places import REPOSITORY
from tests.policies import specimens
from tests.stages.definitions import DEFINITIONS, defined
from tests.stages.definitions import folder_of as path

# Where a Desired keeps the objects of a kind.
FIELD_OF = {
    "GpuPool": "pools",
    "NodeProvisioner": "provisioners",
    "DrainPolicy": "drains",
    "PressurePolicy": "pressures",
    "ChangeGuard": "guards",
}
SCHEMAS = {kind.name: Draft7Validator(schema_of(kind)) for kind in KINDS}

# A definition is for the whole cluster, so that it may stay for all examples: each is a request without effect.
asked_of_the_cluster = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def definitions(lab: Lab) -> Iterator[Lab]:
    """The lab with our kinds, which are taken away afterwards with all objects of them."""
    with defined(lab):
        yield lab


@pytest.fixture
def kinds(definitions: Lab, cluster: Lab) -> Iterator[Lab]:
    """A clean cluster with our kinds and no object of them."""
    yield cluster
    for kind in KINDS:
        cluster.admin.must("DELETE", path(kind))


def manifest(kind: Kind, spec: Any, name: str = "a100") -> Manifest:
    return {"apiVersion": API_VERSION, "kind": kind.name, "metadata": {"name": name}, "spec": spec}


def asked(lab: Lab, kind: Kind, spec: Any) -> Answer:
    """What the API server would say to an object, which it does not keep."""
    return lab.admin.request("POST", f"{path(kind)}?dryRun=All&fieldValidation=Strict", manifest(kind, spec))


def node_of(spec: Any) -> Node | None:
    (node,), _ = read("spec.yaml", json.dumps({"spec": spec}).encode())
    assert isinstance(node, Mapping)
    return node.get("spec")


def struct_of(kind: Kind, spec: Any) -> Any:
    struct, problems = read_spec(kind.shape, node_of(spec), Mark("spec.yaml", 1, 1))
    assert problems == []
    return struct


def kubectl(lab: Lab, *arguments: str) -> list[list[str]]:
    """What a person sees, in words."""
    config = lab.site.kubeconfig("admin", lab.admin)
    command = [str(lab.site.built.binary("kube")), "kubectl", f"--kubeconfig={config}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def everything(shape: Shape, value: Any) -> Any:
    """A struct as plain data, with every field that holds something, default or not."""
    match shape:
        case Object(fields=fields):
            held = [(field, getattr(value, field.attribute)) for field in fields]
            return {field.name: everything(field.shape, own) for field, own in held if own is not None}
        case ListOf(item=item):
            return [everything(item, each) for each in value]
        case MapOf(value=inner):
            return {key: everything(inner, each) for key, each in value.items()}
        case _:
            return plainly(shape, value)


# The status of a policy that no controller has seen.
UNSEEN = {"observedGeneration": -1, "conditions": [], "problems": []}

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@each_kind
def test_the_definition_is_established_and_structural(kind: Kind, kinds: Lab) -> None:
    found = kinds.admin.get(DEFINITIONS, crd_name(kind))
    assert found
    conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
    assert conditions["Established"] == conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions
    assert found["status"]["acceptedNames"]["shortNames"] == [kind.short]


@each_kind
def test_an_object_gets_the_defaults_that_our_structs_have(kind: Kind, kinds: Lab) -> None:
    spec = specimens.smallest(kind.shape)
    created = kinds.admin.must("POST", path(kind), manifest(kind, spec))
    assert created["spec"] == everything(kind.shape, struct_of(kind, spec))
    assert struct_of(kind, created["spec"]) == struct_of(kind, spec)


def same_lists(rendered: Any, live: Any) -> bool:
    """Whether each list of an object stands as it was rendered; outside of lists the API server may add defaults."""
    if isinstance(rendered, dict):
        return all(key in live and same_lists(each, live[key]) for key, each in rendered.items())
    return bool(rendered == live)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.is_policy], ids=lambda kind: kind.name)
@settings(asked_of_the_cluster, max_examples=6)
@given(drawn=some.data())
def test_a_rendered_object_reads_back_as_it_was_rendered_and_with_our_defaults(
    kind: Kind, kinds: Lab, drawn: some.DataObject
) -> None:
    """Else Argo CD's default diff, which knows no defaults inside of lists, differs for ever."""
    spec = drawn.draw(specimens.allowed(kind.shape))
    struct, problems = read_spec(kind.shape, node_of(spec), Mark("spec.yaml", 1, 1))
    if struct is None or problems or own_problems(kind, struct, {"": Mark("spec.yaml", 1, 1)}):
        return
    declared = Declared(kind.name, "a100", struct, ())
    desired = msgspec.structs.replace(Desired("r", "base"), **{FIELD_OF[kind.name]: (declared,)})
    (rendered,) = (each for each in custom_resources(desired))
    here = f"{path(kind, 'a100')}?dryRun=All&fieldValidation=Strict&fieldManager=argocd&force=true"
    answer = kinds.admin.request("PATCH", here, rendered, "application/apply-patch+yaml")
    assert answer.code == 201, answer.body
    assert same_lists(rendered["spec"], answer.body["spec"])
    assert answer.body["spec"] == everything(kind.shape, struct)
    assert answer.body["bundle"] == rendered["bundle"]
    assert answer.body["metadata"]["annotations"] == rendered["metadata"]["annotations"]


def test_an_object_that_nobody_follows_is_of_no_generation(kinds: Lab) -> None:
    for kind in KINDS:
        kinds.admin.must("POST", path(kind), manifest(kind, specimens.smallest(kind.shape)))
        found = kinds.admin.must("GET", path(kind, "a100"))
        assert found.get("status") == (UNSEEN if kind.is_policy else None)


def test_a_new_bundle_is_a_new_generation(kinds: Lab) -> None:
    spec = specimens.smallest(NODE_PROVISIONER.shape)
    generations = []
    for digest in ("sha256:1", "sha256:2"):
        noted = {"annotations": {names.BUNDLE_DIGEST: digest}, "name": "a100"}
        made = {**manifest(NODE_PROVISIONER, spec), "metadata": noted, "bundle": digest}
        kinds.admin.apply(made, owner="argocd")
        generations.append(kinds.admin.must("GET", path(NODE_PROVISIONER, "a100"))["metadata"]["generation"])
    assert generations == [1, 2]


def test_where_nothing_is_required_not_even_a_spec_is(kinds: Lab) -> None:
    bare = {name: value for name, value in manifest(GPU_NODE_STATUS, None, "gpu-0").items() if name != "spec"}
    assert kinds.admin.must("POST", path(GPU_NODE_STATUS), bare)["spec"] == {"suspend": False}


def test_kubectl_shows_the_columns(kinds: Lab) -> None:
    spec = {"poolName": "a100", "minSize": 8, "maxSize": 16, "minGPUUtilizationPercent": 70}
    kinds.admin.must("POST", path(NODE_PROVISIONER), manifest(NODE_PROVISIONER, spec))
    status = {"currentSize": 12, "targetSize": 10, "conditions": [{**ready("True"), "message": "It is followed."}]}
    kinds.admin.merge(f"{path(NODE_PROVISIONER, 'a100')}/status", {"status": status})
    titles, values = kubectl(kinds, "get", NODE_PROVISIONER.short)
    assert titles == ["NAME", "POOL", "MIN", "MAX", "UTILIZATION", "SIZE", "TARGET", "READY", "AGE", "MESSAGE"]
    assert values[:8] == ["a100", "a100", "8", "16", "70", "12", "10", "True"]
    assert values[9:] == ["It", "is", "followed."]


@each_kind
def test_all_columns_of_a_kind_have_their_values(kind: Kind, kinds: Lab) -> None:
    kinds.admin.must("POST", path(kind), manifest(kind, specimens.smallest(kind.shape)))
    (titles, _) = kubectl(kinds, "get", kind.plural)
    assert titles == ["NAME", *(column.title.upper() for column in kind.columns)]


def test_one_word_gets_objects_of_all_kinds(kinds: Lab) -> None:
    for kind in KINDS:
        kinds.admin.must("POST", path(kind), manifest(kind, specimens.smallest(kind.shape)))
    names = {line[0].partition(".")[0] for line in kubectl(kinds, "get", CATEGORY, "-o", "name")}
    assert names == {kind.name.lower() for kind in KINDS}


def ready(status: str) -> dict[str, str]:
    moment = "2026-11-02T08:00:00Z"
    return {"type": "Ready", "status": status, "reason": "Read", "message": "", "lastTransitionTime": moment}


def test_a_status_is_written_apart_from_the_spec(kinds: Lab) -> None:
    admin, here = kinds.admin, path(NODE_PROVISIONER, "a100")
    spec = specimens.smallest(NODE_PROVISIONER.shape)
    status = {"observedGeneration": 1, "conditions": [ready("False")], "problems": ["There is no pool a100."]}
    created = admin.must("POST", path(NODE_PROVISIONER), {**manifest(NODE_PROVISIONER, spec), "status": status})
    assert created["status"] == UNSEEN
    written = admin.merge(f"{here}/status", {"status": status, "spec": {"maxSize": 9}})
    assert (written["status"], written["spec"]) == (status, created["spec"])
    assert written["metadata"]["generation"] == 1
    assert admin.merge(here, {"spec": {"maxSize": 9}, "status": None})["status"] == status


@pytest.mark.parametrize(
    "wrong",
    [
        {"conditions": [ready("Maybe")]},
        {"conditions": [ready("True"), ready("False")]},
        {"conditions": [{**ready("True"), "lastTransitionTime": "yesterday"}]},
        {"problems": [7]},
    ],
    ids=["word", "twice", "time", "number"],
)
def test_a_status_that_is_none_is_refused(wrong: Any, kinds: Lab) -> None:
    kinds.admin.must(
        "POST", path(NODE_PROVISIONER), manifest(NODE_PROVISIONER, specimens.smallest(NODE_PROVISIONER.shape))
    )
    with pytest.raises(Refused):
        kinds.admin.merge(f"{path(NODE_PROVISIONER, 'a100')}/status", {"status": wrong})


def test_an_agent_reports_its_devices_in_the_status(kinds: Lab) -> None:
    kinds.admin.must("POST", path(GPU_NODE_STATUS), manifest(GPU_NODE_STATUS, {}, "gpu-0"))
    here = f"{path(GPU_NODE_STATUS, 'gpu-0')}/status"
    reported = kinds.admin.merge(here, {"status": {"devices": [{"id": 0, "memory": "40Gi"}]}})
    assert reported["status"]["devices"] == [{"id": 0, "memory": "40Gi", "health": "Unknown"}]
    with pytest.raises(Refused, match="Duplicate value"):
        kinds.admin.merge(here, {"status": {"devices": [{"id": 0}, {"id": 0}]}})


@each_kind
@asked_of_the_cluster
@given(given_=some.data())
def test_it_takes_a_spec_if_and_only_if_it_keeps_our_rules(kind: Kind, given_: some.DataObject, kinds: Lab) -> None:
    spec = given_.draw(specimens.allowed(kind.shape))
    broken = [rule for rule in kind.rules if not rule.holds(struct_of(kind, spec))]
    answer = asked(kinds, kind, spec)
    assert answer.code == (422 if broken else 201), answer.body
    if broken:
        told = {(cause["field"], cause["message"].partition("(")[2][:5]) for cause in answer.body["details"]["causes"]}
        assert told == {(f"spec.{rule.at}", rule.code) for rule in broken}


@asked_of_the_cluster
@given(given_=some.data())
def test_it_refuses_each_fault_that_the_json_schema_refuses(given_: some.DataObject, kinds: Lab) -> None:
    kind = given_.draw(some.sampled_from(KINDS))
    spec = given_.draw(specimens.faulty(kind))
    assert not SCHEMAS[kind.name].is_valid(manifest(kind, spec))
    assert asked(kinds, kind, spec).code in {400, 422}


@pytest.mark.parametrize(
    ("kind", "change", "told"),
    [
        ("GpuPool", {"expireAfter": "87841h"}, "is longer than ten years"),
        ("GpuPool", {"expireAfter": "999999999h"}, "is longer than ten years"),
        ("GpuPool", {"instanceTypes": [{"name": "g6", "pricePerHour": {"ondemand": "1"}}]}, "keys may be reserved"),
        ("GpuPool", {"labels": {"a b": "c"}}, "each key must be a label key, such as example.com/team"),
        ("GpuPool", {"instanceTypes": [{"name": "g6"}, {"name": "g6"}]}, "two items have the same name"),
        ("GpuPool", {"taints": [{"key": "gpu", "effect": "NoSchedule"}] * 2}, "Duplicate value"),
        ("PressurePolicy", {"memSlotSize": -1}, "should be greater than or equal to 0"),
        # The reader takes it: an API server has one word for numbers and texts, which leaves out floats.
        ("PressurePolicy", {"memSlotSize": 0.5}, "must be of type integer"),
        ("NodeProvisioner", {"minSize": 9, "maxSize": 4}, "minSize 9 is above maxSize 4 (RC201): lower minSize"),
    ],
)
def test_what_it_refuses_it_names(kind: str, change: dict[str, Any], told: str, kinds: Lab) -> None:
    chosen = kind_named(kind)
    assert chosen
    answer = asked(kinds, chosen, {**specimens.smallest(chosen.shape), **change})
    assert answer.code == 422
    assert told in answer.body["message"]


def test_null_is_as_good_as_left_out(kinds: Lab) -> None:
    """As the reader has it: null restores the default."""
    spec = specimens.smallest(NODE_PROVISIONER.shape)
    nulls = {field.name: None for field in NODE_PROVISIONER.shape.fields if not field.required}
    created = kinds.admin.must("POST", path(NODE_PROVISIONER), manifest(NODE_PROVISIONER, {**spec, **nulls}))
    assert struct_of(NODE_PROVISIONER, created["spec"]) == struct_of(NODE_PROVISIONER, spec)


def corpus() -> list[tuple[str, Kind, Any, set[str]]]:
    """Each readable document of all policies here, good and bad, with the codes of what is wrong with it by itself."""
    found = []
    for folder in ("policies", "tests/policies/good", "tests/policies/bad"):
        for file in sorted((REPOSITORY / folder).rglob("*.yaml")):
            nodes, told = read(file.name, file.read_bytes())
            # What YAML itself leaves in doubt does not reach the API server.
            for node in nodes if not told else ():
                document, problems = read_head(node)
                if document is None or any(each.code == "RC102" for each in problems):
                    continue
                spec, wrong = read_spec(document.kind.shape, document.spec, document.at)
                problems += wrong
                if spec is not None:
                    problems += own_problems(document.kind, spec, {"": document.at})
                title = f"{file.relative_to(REPOSITORY)}:{node.at.line}"
                found.append((title, document.kind, plain(node), {each.code for each in problems}))
    return found


# What a schema with rules can hold; names that lead nowhere, schedules, time zones and intentions it can't.
HELD = {"RC103", "RC104", "RC105", "RC106", "RC107", "RC108", "RC109", "RC201", "RC202", "RC203", "RC204", "RC207"}


def test_it_agrees_with_validate_on_every_document_of_the_corpus(kinds: Lab) -> None:
    differing = []
    documents = corpus()
    for title, kind, document, codes in documents:
        answer = kinds.admin.request("POST", f"{path(kind)}?dryRun=All&fieldValidation=Strict", document)
        if (answer.code >= 300) != bool(codes & HELD):
            differing.append(
                f"{title}: {sorted(codes)} here, {answer.code} there: {answer.body.get('message', '')[:300]}"
            )
    assert differing == []
    assert len(documents) > 60
