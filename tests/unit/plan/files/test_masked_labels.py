"""Labels in dumps: what nothing asks for is masked, and the plan stays the same byte for byte."""

from random import Random
from typing import Any

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.cluster.pod import Affinity, PodTerm, PodTerms
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.files.dump import read, write
from reconciler.plan.planner import plan
from tests.unit.kube.real_objects import SECRET
from tests.unit.plan.drawn_fleets import Drawn

KEYS = ("team", "customer", "app.kubernetes.io/name", "example.com/z")
VALUES = ("a", "a-b", "a.b", "B", "b", "", "zed", "a0")
LABELLED = ("pods", "nodes", "node_claims")
_change = msgspec.structs.replace


def labelled(inputs: Inputs, chance: Random) -> Inputs:
    """With labels that mean nothing; some name the object itself."""

    def with_labels(each: Any) -> Any:
        values = (*VALUES, each.metadata.name)
        labels = each.metadata.labels | {key: chance.choice(values) for key in KEYS if chance.random() < 0.6}
        return _change(each, metadata=_change(each.metadata, labels=labels))

    observed = inputs.observed
    fields = {field: tuple(map(with_labels, getattr(observed, field))) for field in LABELLED}
    return _change(inputs, observed=_change(observed, **fields))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_a_dump_with_masked_labels_replays_to_the_same_plan(first: int) -> None:
    for seed in range(first, first + 20):
        inputs = labelled(Drawn(seed).inputs(), Random(seed))
        content = write(inputs)
        again = read(content)
        assert again.observed != inputs.observed
        assert write(again) == content
        assert plan(again, Fleet(again.observed)).digest == plan(inputs, Fleet(inputs.observed)).digest, seed


def with_secret(each: Any) -> Any:
    return _change(each, metadata=_change(each.metadata, labels={**each.metadata.labels, "customer": SECRET}))


def test_what_no_selector_names_is_masked() -> None:
    inputs = Drawn(0).inputs()
    fields = {key: tuple(map(with_secret, getattr(inputs.observed, key))) for key in (*LABELLED, "node_pools", "kept")}
    inputs = _change(inputs, observed=_change(inputs.observed, **fields))
    content = write(inputs)
    assert SECRET.encode() not in content
    assert {each.metadata.labels["customer"] for each in read(content).observed.pods} == {"*1"}


def test_what_a_selector_names_stays() -> None:
    inputs = Drawn(0).inputs()
    pod = with_secret(inputs.observed.pods[0])
    term = PodTerm("kubernetes.io/hostname", LabelSelector({"customer": "another"}))
    spec = _change(pod.spec, affinity=Affinity(pod_anti_affinity=PodTerms((term,))))
    pods = (pod, _change(pod, spec=spec))
    content = write(_change(inputs, observed=_change(inputs.observed, pods=pods)))
    assert SECRET.encode() in content


def test_values_that_sort_between_others_keep_their_place() -> None:
    inputs = Drawn(0).inputs()
    values = ("a", "a-b", "a.b", "b", inputs.observed.pods[0].metadata.name)
    pod = inputs.observed.pods[0]
    pods = tuple(
        _change(pod, metadata=_change(pod.metadata, labels={"customer": value}, uid=f"uid-{number}"))
        for number, value in enumerate(values)
    )
    found = read(write(_change(inputs, observed=_change(inputs.observed, pods=pods)))).observed.pods
    masks = {values[int(each.metadata.uid[-1])]: each.metadata.labels["customer"] for each in found}
    assert sorted(masks, key=masks.__getitem__) == sorted(values)
    assert masks[pod.metadata.name] == pod.metadata.name
