"""The extender that only listens: it tells what it heard, refuses every node, and is gone when it is stopped."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from tests.stages.scheduling.witness import Witness


@pytest.fixture
def witness() -> Iterator[Witness]:
    with Witness() as witness:
        yield witness


def ask(witness: Witness, uid: str, *nodes: str) -> Any:
    body = json.dumps({"Pod": {"metadata": {"uid": uid}}, "Nodes": None, "NodeNames": nodes})
    with urllib3.PoolManager() as pool:
        answer = pool.request("POST", f"{witness.extender()['urlPrefix']}/filter", body=body, retries=False)
    assert answer.status == 200
    return answer.json()


def test_it_hears_which_nodes_passed_and_refuses_them_all(witness: Witness) -> None:
    assert ask(witness, "a", "n1", "n2") == {"NodeNames": [], "FailedNodes": {}, "Error": ""}
    ask(witness, "b", "n3")
    assert witness.heard("a") == {"n1", "n2"}
    assert witness.heard("b") == {"n3"}


def test_of_a_pod_that_is_tried_again_the_last_try_counts(witness: Witness) -> None:
    ask(witness, "a", "n1", "n2")
    ask(witness, "a", "n2")
    assert witness.heard("a") == {"n2"}


def test_of_a_pod_that_nobody_asked_about_no_node_passed(witness: Witness) -> None:
    assert witness.heard("a") == frozenset()


def test_what_is_forgotten_was_not_heard(witness: Witness) -> None:
    ask(witness, "a", "n1")
    witness.forget()
    assert witness.heard("a") == frozenset()


def test_a_body_beyond_all_measure_is_refused(witness: Witness) -> None:
    with urllib3.PoolManager() as pool:
        headers = {"Content-Length": str(10**12)}
        answer = pool.request("POST", f"{witness.extender()['urlPrefix']}/filter", headers=headers, retries=False)
    assert answer.status == 413


def test_stopped_it_no_longer_answers() -> None:
    with Witness() as witness:
        ask(witness, "a", "n1")
    with pytest.raises(urllib3.exceptions.NewConnectionError):
        ask(witness, "a", "n1")
