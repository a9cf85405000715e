"""What is installed on the way to a wheel, an image or a lock is known by its hash."""

import re

import pytest

from tests.lab.places import REPOSITORY

INSTALLS = re.compile(r"pip install [^\n&|]*")
# The package itself, of which everything else is there already.
ITS_OWN = re.compile(r"--no-deps")


@pytest.mark.parametrize("name", ["Makefile", "Dockerfile", ".ci/run"])
def test_every_installation_demands_hashes(name: str) -> None:
    found = [each for each in INSTALLS.findall((REPOSITORY / name).read_text()) if not ITS_OWN.search(each)]
    assert [each for each in found if "--require-hashes" not in each] == []


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock", "requirements-tools.lock"])
def test_every_requirement_is_pinned_with_a_hash(name: str) -> None:
    text = re.sub(r"\\\n\s*", "", (REPOSITORY / name).read_text())
    lines = [each for each in text.splitlines() if each and not each.lstrip().startswith("#")]
    assert lines
    assert [each for each in lines if "==" not in each or "--hash=sha256:" not in each] == []
