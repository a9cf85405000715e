"""The folders of the unit tests mirror the folders under test, so that one is found from the other."""

from pathlib import PurePosixPath

from tests.tidy.finding import Finding
from tests.tidy.tree import Tree

UNIT = "tests/unit"
# Folders that have unit tests: those of the package, those that tests work with, and those shipped beside the package.
TESTED = ("reconciler/", "tests/", "")
REMEDY = f"move it to the folder of {UNIT} that has the path of the folder under test"


def unit_tests_mirror_the_package(tree: Tree) -> list[Finding]:
    """Unit tests in a folder without a counterpart, and unit tests in no folder unless a module of tests/ is tested."""
    found = []
    for path in tree.python(UNIT):
        place = PurePosixPath(path).relative_to(UNIT)
        folder = str(place.parent)
        if folder != "." and not any(_is_there(tree, f"{root}{folder}") for root in TESTED):
            found.append(Finding(path, 1, f"There is no folder or module {folder} that this could test", REMEDY))
        if folder == "." and place.name.startswith("test_") and f"tests/{place.name[5:]}" not in tree.paths:
            found.append(Finding(path, 1, f"{path} stands in no folder", REMEDY))
    return found


def _is_there(tree: Tree, place: str) -> bool:
    """A folder, or a module that has several files of tests."""
    return place in tree.folders or f"{place}.py" in tree.paths
