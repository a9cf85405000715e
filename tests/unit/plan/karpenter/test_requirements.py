"""Whether a claim still is what its NodePool requires: the table of cases, and what holds for all labels."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.model.cluster.node import NodePoolRequirement
from reconciler.plan.karpenter.drift import demands, meets
from tests import folders

CASES: dict[str, Any] = yaml.safe_load((folders.CASES / "karpenter" / "requirements.yaml").read_text())


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    written = [NodePoolRequirement(key, operator, tuple(values)) for key, operator, *values in case["require"]]
    for requirements in (written, written[::-1]):
        demanded = demands(requirements)
        assert [each for each in case["stay"] if not meets(each, demanded)] == []
        assert [each for each in case["drift"] if meets(each, demanded)] == []


def test_the_zone_of_the_cloud_s_disks_is_the_zone() -> None:
    demanded = demands([NodePoolRequirement("topology.ebs.csi.aws.com/zone", "In", ("eu-1a",))])
    assert meets({"topology.kubernetes.io/zone": "eu-1a"}, demanded)
    assert not meets({"topology.kubernetes.io/zone": "eu-1b"}, demanded)


KEYS = ["zone", "cpu", "kubernetes.io/arch", "topology.kubernetes.io/zone"]
NUMBERS = some.integers(0, 20)
VALUES = some.sampled_from("abc") | NUMBERS.map(str)
LABELS = some.dictionaries(some.sampled_from(KEYS), VALUES)


@some.composite
def met_by(draw: some.DrawFn, labels: dict[str, str]) -> NodePoolRequirement:
    """A requirement that holds of these labels."""
    key = draw(some.sampled_from(KEYS))
    others = draw(some.lists(VALUES.filter(lambda value: value != labels.get(key)), min_size=1, max_size=3))
    if key not in labels:
        return draw(
            some.sampled_from(
                [NodePoolRequirement(key, "DoesNotExist"), NodePoolRequirement(key, "NotIn", tuple(others))]
            )
        )
    value = labels[key]
    found = [
        NodePoolRequirement(key, "In", (*others, value)),
        NodePoolRequirement(key, "NotIn", tuple(others)),
        NodePoolRequirement(key, "Exists"),
    ]
    if value.isdigit():
        less, more = draw(some.integers(0, int(value))), draw(some.integers(int(value), 30))
        found += [NodePoolRequirement(key, "Gte", (str(less),)), NodePoolRequirement(key, "Lte", (str(more),))]
        found += [NodePoolRequirement(key, "Lt", (str(more + 1),))]
        found += [NodePoolRequirement(key, "Gt", (str(less - 1),))] if less else []
    return draw(some.sampled_from(found))


@given(some.data(), LABELS)
def test_labels_meet_every_requirement_that_holds_of_them(data: some.DataObject, labels: dict[str, str]) -> None:
    requirements = data.draw(some.lists(met_by(labels), max_size=6))
    assert meets(labels, demands(requirements))


@given(some.data(), LABELS.filter(bool))
def test_one_requirement_that_excludes_a_label_is_enough(data: some.DataObject, labels: dict[str, str]) -> None:
    requirements = data.draw(some.lists(met_by(labels), max_size=4))
    key = data.draw(some.sampled_from(sorted(labels)))
    excluding = NodePoolRequirement(key, "NotIn", (labels[key],))
    place = data.draw(some.integers(0, len(requirements)))
    assert not meets(labels, demands([*requirements[:place], excluding, *requirements[place:]]))


@given(some.data(), LABELS, LABELS)
def test_order_and_repetition_do_not_matter(
    data: some.DataObject, labels: dict[str, str], holds_of: dict[str, str]
) -> None:
    requirements = data.draw(some.lists(met_by(holds_of), max_size=6))
    again = data.draw(some.permutations(requirements + requirements[:2]))
    assert meets(labels, demands(again)) == meets(labels, demands(requirements))
