"""The files that follow from the kinds are committed as they follow from them."""

from pathlib import Path

import pytest

from reconciler.schema.generated import CRDS, REFERENCE, SCHEMAS, generated_files
from reconciler.simulate.scenario.reading import scenario_files
from tests.lab.places import REPOSITORY

FILES = generated_files() | scenario_files()
REMEDY = "run `make generate`, and commit what it writes"


def committed(root: Path) -> set[str]:
    """What stands where generated files do; of schemas/ only the kinds' own."""
    found = [*root.glob(f"{SCHEMAS}/*.v*.json"), *root.glob(f"{CRDS}/*")]
    return {str(path.relative_to(root)) for path in found}


@pytest.mark.parametrize("path", FILES)
def test_the_file_says_what_the_kinds_say(path: str) -> None:
    file = REPOSITORY / path
    if not file.is_file():
        pytest.fail(f"{path} is missing: {REMEDY}", pytrace=False)
    if file.read_text(encoding="utf-8") != FILES[path]:
        pytest.fail(f"{path} is not what the kinds say: {REMEDY}", pytrace=False)


def test_no_file_is_left_of_a_kind_that_is_gone() -> None:
    if left := sorted(committed(REPOSITORY) - set(FILES)):
        pytest.fail(f"no kind has these files: git rm {' '.join(left)}", pytrace=False)


def test_every_kind_has_its_files() -> None:
    names = set(FILES)
    assert {
        "schemas/gpu-pool.v1.json",
        "schemas/gpu-pool.overlay.v1.json",
        "schemas/gpu-claim.v1.json",
        "schemas/policies.v1.json",
        "schemas/policies.overlay.v1.json",
        "schemas/crds/nodeprovisioners.gpu.scheduling.yaml",
        REFERENCE,
    } <= names
    # What no team writes into its repository has nothing to lay an overlay over.
    assert "schemas/gpu-claim.overlay.v1.json" not in names


def test_the_same_kinds_give_the_same_bytes() -> None:
    assert generated_files() | scenario_files() == FILES
    assert all(content.endswith("\n") and "\r" not in content for content in FILES.values())
    assert not any("&id" in content for path, content in FILES.items() if path.endswith(".yaml"))
