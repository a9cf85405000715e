"""What stands in the way of a pod's eviction: each case is reached, and budgets are found as if each were tried."""

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from reconciler.model.cluster.workload import PodDisruptionBudget
from reconciler.model.plan.consequence import Hindrance, HindranceKind
from reconciler.plan.karpenter.node_fate import Surveyed, held_by
from reconciler.plan.nodes.eviction import EvictionObstacle, PodBudgets, why_immovable
from tests.unit.plan.karpenter.stage import NOW, Words, pod


def budget(name: str, allows: int | None, namespace: str = "team", **spec: Any) -> PodDisruptionBudget:
    status = {} if allows is None else {"disruptionsAllowed": allows, "observedGeneration": 1}
    words = {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": status}
    return msgspec.convert(words, PodDisruptionBudget)


WEB: Words = {"selector": {"matchLabels": {"app": "web"}}}
SPENT = budget("web", 0, **WEB)
ANY = budget("all", 1, selector={})
PATIENT = budget("web", 0, **WEB, unhealthyPodEvictionPolicy="AlwaysAllow")
LABELS = {"labels": {"app": "web"}}

# In the order of the rules: one pod for each.
LANDED: tuple[tuple[Words, tuple[PodDisruptionBudget, ...], EvictionObstacle | None], ...] = (
    (LABELS | {"phase": "Succeeded", "asks": "true"}, (SPENT,), None),
    (LABELS | {"asks": "true"}, (SPENT,), EvictionObstacle.DO_NOT_DISRUPT),
    (LABELS, (), None),
    (LABELS | {"owner": "Node"}, (SPENT, ANY), None),
    (LABELS, (SPENT, ANY), EvictionObstacle.SEVERAL_BUDGETS),
    (LABELS | {"ready": False}, (PATIENT,), None),
    (LABELS, (budget("web", None, **WEB),), EvictionObstacle.BUDGET_UNSEEN),
    (LABELS, (SPENT,), EvictionObstacle.BUDGET_SPENT),
    (LABELS, (budget("web", 1, **WEB),), None),
)


@pytest.mark.parametrize(("words", "budgets", "obstacle"), LANDED)
def test_the_first_rule_that_matches_counts(
    words: Words, budgets: tuple[PodDisruptionBudget, ...], obstacle: EvictionObstacle | None
) -> None:
    assert why_immovable(pod("one", words), PodBudgets(budgets), NOW) == obstacle


@pytest.mark.parametrize(
    ("words", "obstacle"),
    [
        ({"asks": "true", "leaving": True}, None),
        ({"asks": "True"}, None),
        ({"asks": "2h"}, EvictionObstacle.DO_NOT_DISRUPT),
        ({"asks": "2h", "ran": "119m"}, EvictionObstacle.DO_NOT_DISRUPT),
        ({"asks": "2h", "ran": "2h"}, None),
        ({"asks": "-2h"}, None),
        ({"asks": "99999h", "ran": "1h"}, EvictionObstacle.DO_NOT_DISRUPT),
        ({"asks": "true", "owner": "DaemonSet"}, EvictionObstacle.DO_NOT_DISRUPT),
    ],
)
def test_do_not_disrupt_is_read_as_karpenter_reads_it(words: Words, obstacle: EvictionObstacle | None) -> None:
    assert why_immovable(pod("one", words), PodBudgets(), NOW) == obstacle


def test_a_budget_without_a_selector_holds_for_nothing() -> None:
    assert PodBudgets([budget("none", 0)]).of(pod("one", LABELS)) == ()


@pytest.mark.parametrize(
    ("words", "titles"),
    [
        (LABELS, {"PodDisruptionBudget/team/all": "pod_budget", "PodDisruptionBudget/team/web": "pod_budget"}),
        (LABELS | {"asks": "true"}, {"karpenter.sh/do-not-disrupt": "annotation"}),
        (LABELS | {"leaving": True}, {}),
    ],
)
def test_what_stands_in_the_way_is_named(words: Words, titles: dict[str, HindranceKind]) -> None:
    surveyed = Surveyed(None, None, [pod("one", words)], NOW)
    assert held_by(surveyed, PodBudgets([SPENT, ANY])) == {Hindrance(*each) for each in titles.items()}


SOME_LABELS = some.dictionaries(some.sampled_from("abc"), some.sampled_from(["", "x", "y"]))
EXPRESSIONS = some.lists(
    some.fixed_dictionaries(
        {
            "key": some.sampled_from("abc"),
            "operator": some.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
            "values": some.lists(some.sampled_from(["", "x", "y"]), max_size=2),
        }
    ),
    max_size=2,
)
SELECTORS = some.none() | some.fixed_dictionaries({"matchLabels": SOME_LABELS, "matchExpressions": EXPRESSIONS})


@example(
    [("team", {"matchLabels": {"a": "x"}}), ("team", {}), ("team", {"matchLabels": {"b": "y"}})], {"a": "x", "b": "y"}
)
@given(some.lists(some.tuples(some.sampled_from(["team", "other"]), SELECTORS), max_size=8), SOME_LABELS)
def test_budgets_are_found_as_if_each_were_tried(wished: list[tuple[str, Any]], labels: dict[str, str]) -> None:
    budgets = [budget(f"b{n}", 1, place, selector=selector) for n, (place, selector) in enumerate(wished)]
    tried = [
        each
        for each in budgets
        if each.metadata.namespace == "team" and each.spec.selector is not None and each.spec.selector.matches(labels)
    ]
    assert list(PodBudgets(reversed(budgets)).of(pod("one", {"labels": labels}))) == tried
