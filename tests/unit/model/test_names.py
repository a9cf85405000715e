"""Names of objects, namespaces and values of labels: each has a limit of its own."""

import re
from pathlib import Path

import pytest

from reconciler.cli.main import main
from reconciler.model.fields import LABEL_VALUE, NAMESPACE, why_no_name
from reconciler.policy.rules.kinds import KINDS

LONG = "ip-" + "0123456789-" * 22 + "a.eu"  # as long as the name of a node may be, without a dot in the first 246


@pytest.mark.parametrize("name", ["a", "a100", "a-b.c", "x" * 253, LONG, "0.1"])
def test_a_name_may_have_253_characters_however_few_dots_are_in_them(name: str) -> None:
    assert not why_no_name(name)


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a..b", ".a", "a_b", "a\n", "x" * 254])
def test_other_texts_are_no_names(name: str) -> None:
    assert why_no_name(name)


@pytest.mark.parametrize("pattern", [NAMESPACE.pattern, LABEL_VALUE.pattern])
def test_a_namespace_and_the_value_of_a_label_have_at_most_63_characters(pattern: str) -> None:
    assert re.fullmatch(pattern, "x" * 63)
    assert not re.fullmatch(pattern, "x" * 64)


def test_policies_whose_name_becomes_the_value_of_a_label_have_names_of_at_most_63_characters() -> None:
    assert {kind.name for kind in KINDS if kind.longest_name == 63} == {"GpuPool", "NodeProvisioner"}


@pytest.mark.parametrize(
    ("subject", "code"),
    [
        (f"node/{LONG}", 1),  # there is no cluster; the name is no wrong usage
        (f"guard/{'x' * 253}", 1),
        (f"pool/{'x' * 63}", 1),
        (f"node/{'x' * 254}", 64),
        (f"pool/{'x' * 64}", 64),
        ("node/Node_1", 64),
        ("node/", 64),
    ],
)
def test_freeze_takes_every_name_that_the_object_may_have(
    subject: str, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert main(["freeze", subject, "--for", "1h"]) == code
    assert ("is not a valid name of a" in capsys.readouterr().err) == (code == 64)
