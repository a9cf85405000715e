"""The pages of rights have what is looked at and written with some policies, all of it and nothing besides."""

from collections import Counter

import msgspec
import pytest
import yaml

from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.manifest_rules import YIELDED as KINDS
from reconciler.schema.rights.page import person_page, reading_page, writing_page
from reconciler.schema.rights.rules import reading_rights
from tests.unit.schema.rights.stage import (
    LOOKS,
    NODE_POOLS,
    STATUSES,
    YIELDS,
    acted,
    drained,
    granted,
    kept,
    left_behind,
    looked_at,
    pressed,
    scaled,
    told_where,
    waited_for,
    wish,
    written,
)


def test_without_policies_every_kind_that_is_looked_at_can_be_looked_at_and_none_besides() -> None:
    assert granted(reading_page(())) == looked_at("EC2NodeClass", "KWOKNodeClass")


def test_of_node_classes_only_those_that_pools_name() -> None:
    assert granted(reading_page([wish()])) == looked_at("EC2NodeClass")
    both = [wish(), wish(group="karpenter.kwok.sh", kind="KWOKNodeClass")]
    assert granted(reading_page(both)) == looked_at("EC2NodeClass", "KWOKNodeClass")
    assert granted(reading_page([Desired("r", "base")])) == looked_at(), "there are policies, and they name none"


def test_the_plural_of_a_node_class_that_is_not_known_is_a_guess_that_says_so() -> None:
    page = reading_page([wish(group="example.com", kind="MetalNodeClass")])
    extra = granted(page) - looked_at()
    assert extra == {("", "example.com", "metalnodeclasses", verb) for verb in LOOKS}
    assert "metalnodeclasses is guessed from MetalNodeClass" in page.replace("\n  # ", " ")


def test_no_right_to_look_is_granted_twice() -> None:
    rights = Counter(
        (right.namespace, right.group, each) for right in reading_rights((), "x") for each in right.resources
    )
    assert set(rights.values()) == {1}


def test_the_namespace_is_where_the_account_and_its_leases_are() -> None:
    page = reading_page([wish()], "elsewhere")
    assert granted(page) == looked_at("EC2NodeClass", namespace="elsewhere")
    assert "gpu-system" not in page


def test_all_namespaces_are_looked_at_since_pods_choose_among_them_by_label() -> None:
    rules = [rule for each in yaml.safe_load_all(reading_page(())) for rule in each.get("rules", ())]
    (namespaces,) = (rule for rule in rules if "namespaces" in rule["resources"])
    assert (namespaces["resources"], tuple(namespaces["verbs"])) == (["namespaces"], LOOKS)
    assert not any("resourceNames" in rule for rule in rules)


@pytest.mark.parametrize("page", [reading_page(()), writing_page(())], ids=["reading", "writing"])
def test_each_rule_says_why_it_is_needed(page: str) -> None:
    lines = page.splitlines()
    rules = [number for number, line in enumerate(lines) if line.startswith("  - apiGroups:")]
    assert rules
    assert all(lines[number - 1].startswith("  # ") for number in rules)


def test_every_field_of_what_is_seen_has_its_reason() -> None:
    told = {seen.field for seen in RESOURCE_KINDS}
    assert told <= {field.name for field in msgspec.structs.fields(Observed)}
    assert all(right.why for right in reading_rights((), "x"))


def test_what_templates_yield_for_pools_that_are_enforced_may_be_written_where_it_goes() -> None:
    assert acted(writing_page([wish(YIELDS)], resources=False)) == NODE_POOLS | written(
        ("", "scheduling.k8s.io", "priorityclasses"),
    )
    assert acted(writing_page([wish()], resources=False)) == NODE_POOLS


def test_smart_pods_are_made_where_the_pools_have_them_and_nowhere_else() -> None:
    both = [wish(), wish(name="l4", namespace="scaling"), wish(name="h100", namespace="idle", mode="Observe")]
    rules = acted(writing_page(both, resources=False))
    assert rules == NODE_POOLS | waited_for("gpu-smart-pods", "scaling")
    assert {where for where, _, resource, verb in rules if (resource, verb) == ("pods", "create")} == {
        "gpu-smart-pods",
        "scaling",
    }


def test_how_policies_stand_is_told_on_them_or_in_a_config_map() -> None:
    both, there, here = (granted(writing_page([wish()], resources=each)) for each in (None, True, False))
    assert there - here == STATUSES
    assert here - there == told_where()
    assert both == there | here


def test_a_pool_that_adopts_asks_for_no_more() -> None:
    assert granted(writing_page([wish(adopt="true")])) == granted(writing_page([wish()]))


def test_nodes_are_deleted_only_for_a_pool_that_is_scaled() -> None:
    deletes = {("", "", "nodes", "delete")}
    assert granted(writing_page([scaled(wish())])) - granted(writing_page([wish()])) == deletes
    for unscaled in (scaled(wish(), suspend="true"), scaled(wish(mode="Observe")), scaled(wish(name="l4"))):
        assert not deletes & acted(writing_page([unscaled], resources=False))


def test_pods_are_evicted_and_nodes_deleted_only_for_a_pool_that_is_drained() -> None:
    asked = {("", "", "nodes", "delete"), ("", "", "pods/eviction", "create")}
    for names in (["a100"], ["*"]):
        assert granted(writing_page([drained(wish(), pool_names=names)])) - granted(writing_page([wish()])) == asked
    for left_alone in (drained(wish(), suspend=True), drained(wish(mode="Observe")), drained(wish(name="l4"))):
        assert not asked & acted(writing_page([left_alone], resources=False))


def test_pods_are_resized_where_a_pressure_policy_is_in_force_and_evicted_where_it_moves_pods() -> None:
    resized = ("", "", "pods/resize", "patch")
    asked = {("", "", "pods/eviction", "create"), resized}
    for fields in ({}, {"pool_names": ["*"]}, {"migration": "Evict"}):
        assert granted(writing_page([pressed(wish(), **fields)])) - granted(writing_page([wish()])) == asked
    assert asked & acted(writing_page([pressed(wish(), migration="None")], resources=False)) == {resized}
    for left_alone in (pressed(wish(), suspend=True), pressed(wish(mode="Observe")), pressed(wish(name="l4"))):
        assert not asked & acted(writing_page([left_alone], resources=False))


@pytest.mark.parametrize("changed", [{"mode": "Observe"}, {"suspend": "true"}])
def test_a_pool_that_is_not_acted_on_asks_for_nothing_to_be_written_but_what_is_kept(changed: dict[str, str]) -> None:
    asked = wish(YIELDS, **changed, adopt="true")
    assert acted(writing_page([asked], resources=False)) == set()
    assert acted(writing_page([asked, wish(name="l4")], resources=False)) == NODE_POOLS


def test_without_policies_pods_are_made_in_the_namespace_of_smart_pods_alone() -> None:
    rules = granted(writing_page((), "here")) - kept("here") - told_where("here") - STATUSES
    waited = waited_for("gpu-smart-pods") - left_behind() | left_behind("here")
    moved = {("", "", "nodes", "delete"), ("", "", "pods/eviction", "create"), ("", "", "pods/resize", "patch")}
    assert rules == moved | waited | written(
        ("", "karpenter.sh", "nodepools"),
        ("", "scheduling.k8s.io", "priorityclasses"),
    )


def test_every_kind_that_templates_may_yield_can_be_written() -> None:
    for kind in KINDS:
        where = "x" if KINDS[kind].namespaced else ""
        rules = acted(writing_page([wish(((kind, where),))], resources=False))
        anyway = waited_for("gpu-smart-pods")
        assert anyway < rules, kind
        assert {verb for *_, verb in rules - anyway} == {"create", "delete", "patch"}, kind


def test_no_right_to_write_is_granted_in_a_namespace_and_everywhere() -> None:
    """A role that can be taken away without anything failing is one too many."""
    rules = granted(writing_page([wish(), scaled(wish(name="b", adopt="true"))])) | granted(writing_page([wish()]))
    everywhere = {rule[1:] for rule in rules if not rule[0]}
    assert not [rule for rule in rules if rule[0] and rule[1:] in everywhere]


def test_looking_grants_no_write_and_nothing_grants_secrets_or_everything() -> None:
    looking, writing = granted(reading_page(())), granted(writing_page(()))
    assert {verb for *_, verb in looking} <= set(LOOKS)
    assert not {"*", "secrets"} & {word for rule in looking | writing for word in rule}


def test_the_controller_can_t_approve_what_holds_it_back() -> None:
    rules = granted(reading_page(())) | granted(writing_page(()))
    assert {verb for _, _, resource, verb in rules if resource == "changeapprovals"} == set(LOOKS)


def test_of_namespaces_people_may_touch_ours_alone() -> None:
    for person in ("freezer", "releaser"):
        rules = [rule for each in yaml.safe_load_all(person_page(person, "here")) for rule in each["rules"]]
        named = [rule for rule in rules if rule["resources"] == ["namespaces"] and rule["verbs"] == ["patch"]]
        assert [rule["resourceNames"] for rule in named] == [["here"]]
