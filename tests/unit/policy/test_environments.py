"""Which environment a command is about."""

import pytest

from reconciler.model.desired import Declared, Desired
from reconciler.model.policy.guards import ChangeGuard
from reconciler.model.problem import Origin
from reconciler.policy.resolve import NotChosen, Resolved, chosen

UID = "9b3c6f0e-52d1-4c0a-9f5e-0d6f6a1c7e21"
OTHER_UID = "11111111-52d1-4c0a-9f5e-0d6f6a1c7e21"


def wish(name: str, cluster_uid: str | None = None) -> Desired:
    guard = ChangeGuard(pool_names=["*"], cluster_uid=cluster_uid)
    return Desired("r", name, guards=(Declared("ChangeGuard", "fleet", guard, (("", Origin("g.yaml", 1)),)),))


def resolved(*wishes: Desired) -> Resolved:
    return Resolved(tuple(each.environment for each in wishes), wishes, (), 1)


def test_the_one_that_was_named() -> None:
    assert chosen(resolved(wish("base"), wish("prod", UID)), "base", UID).environment == "base"


def test_the_only_one_there_is() -> None:
    assert chosen(resolved(wish("base")), None).environment == "base"


def test_the_one_whose_guard_names_the_cluster() -> None:
    found = chosen(resolved(wish("base"), wish("prod", UID), wish("stage", OTHER_UID)), None, UID)
    assert found.environment == "prod"


@pytest.mark.parametrize("cluster_uid", ["", "22222222-52d1-4c0a-9f5e-0d6f6a1c7e21"])
def test_else_a_person_must_say(cluster_uid: str) -> None:
    with pytest.raises(NotChosen, match="choose one with --environment: base, prod"):
        chosen(resolved(wish("base"), wish("prod", UID)), None, cluster_uid)


def test_nor_is_one_chosen_of_two_that_name_the_cluster() -> None:
    with pytest.raises(NotChosen, match="several"):
        chosen(resolved(wish("a", UID), wish("b", UID)), None, UID)


def test_one_that_does_not_exist_is_told_with_those_that_do() -> None:
    with pytest.raises(NotChosen, match='no environment "prd"; found: base, prod'):
        chosen(resolved(wish("base"), wish("prod")), "prd")


def test_why_the_cluster_chose_none_is_told_with_its_uid() -> None:
    with pytest.raises(NotChosen, match=rf"no ChangeGuard names this cluster \(uid {OTHER_UID}\); choose one"):
        chosen(resolved(wish("base"), wish("prod", UID)), None, OTHER_UID)
    with pytest.raises(NotChosen, match=rf"several name this cluster \(uid {UID}\); choose one"):
        chosen(resolved(wish("a", UID), wish("b", UID)), None, UID)
    with pytest.raises(NotChosen, match=r"^there are several environments; choose one"):
        chosen(resolved(wish("base"), wish("prod", UID)), None)
