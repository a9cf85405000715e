"""The two grounds that each test of the contract is tried on."""

from collections.abc import Iterator
from itertools import count

import pytest

from reconciler.policy.rules.kinds import GPU_POOL
from reconciler.schema.crd import crd_name, crd_of
from tests.contract.ground import Ground, Imagined, Real
from tests.lab.api import Manifest
from tests.lab.lab import Lab

DEFINITIONS = "customresourcedefinitions"
_NUMBERS = count()


def _is_served(definition: Manifest | None) -> bool:
    conditions = (definition or {}).get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


@pytest.fixture(scope="package")
def real(lab: Lab) -> Iterator[Real]:
    """Cleared once for all of the contract: each test has names of its own."""
    lab.stop_parts().wipe()
    lab.admin.apply(crd_of(GPU_POOL))
    lab.admin.wait_for(DEFINITIONS, crd_name(GPU_POOL), _is_served)
    ground = Real(lab)
    yield ground
    ground.close()
    lab.admin.delete(DEFINITIONS, crd_name(GPU_POOL))
    lab.admin.wait_for(DEFINITIONS, crd_name(GPU_POOL), lambda found: found is None)
    lab.wipe()


@pytest.fixture(params=["imagined", pytest.param("real", marks=pytest.mark.lab)])
def ground(request: pytest.FixtureRequest) -> Ground:
    if request.param == "imagined":
        return Imagined()
    found: Real = request.getfixturevalue("real")
    return found


@pytest.fixture
def name() -> str:
    """One that no other test has."""
    return f"x{next(_NUMBERS)}"
