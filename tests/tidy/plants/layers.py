"""Packages that know too much, and such as keep the order."""

from tests.tidy.plant import Plant
from tests.tidy.rules.layers import (
    PURITY_CONTRACT,
    SETTINGS,
    every_folder_has_a_place,
    imports_keep_their_contracts,
    planners_do_not_know_one_another,
    pure_folders_are_under_contract,
)

CONTRACTS = f"""[tool.importlinter]
root_package = "reconciler"
include_external_packages = true

[[tool.importlinter.contracts]]
name = "Knowledge points one way"
type = "layers"
containers = ["reconciler"]
layers = ["cli", "(kube) | plan", "model"]

[[tool.importlinter.contracts]]
name = "{PURITY_CONTRACT}"
type = "forbidden"
source_modules = ["reconciler.plan", "reconciler.model"]
forbidden_modules = ["socket"]
"""

KEPT = {
    SETTINGS: CONTRACTS,
    "reconciler/__init__.py": "",
    "reconciler/cli.py": "from reconciler.plan import drain\n",
    "reconciler/plan/__init__.py": "",
    "reconciler/plan/eviction.py": "",
    "reconciler/plan/drain/__init__.py": "from reconciler.plan import eviction\nfrom . import batch\n",
    "reconciler/plan/drain/batch.py": "from ...model import noun\n",
    "reconciler/plan/gpu/__init__.py": "from ..eviction import rank\n",
    "reconciler/model/__init__.py": "",
    "reconciler/model/noun.py": "",
}

UPWARD = {"reconciler/model/noun.py": "\n\nimport reconciler.cli\n\n\ndef f():\n    import socket\n"}
UNPLACED = {"reconciler/stray.py": "", "reconciler/fleet/__init__.py": ""}
ACROSS = {
    "reconciler/plan/gpu/__init__.py": "from ..drain.batch import size\nfrom reconciler.plan import drain, eviction\n"
}

PLANTS = (
    Plant(
        imports_keep_their_contracts,
        "imports that point the wrong way are found where they stand",
        {**KEPT, **UPWARD},
        (
            (
                "reconciler/model/noun.py:3: reconciler.model is not allowed to import reconciler.cli: "
                "reconciler.model.noun imports reconciler.cli. Remedy: knowledge points one way"
            ),
            "reconciler/model/noun.py:7: reconciler.model is not allowed to import socket",
            "reconciler/plan/drain/batch.py:1: reconciler.plan is not allowed to import socket",
        ),
    ),
    Plant(
        imports_keep_their_contracts,
        "a tree without contracts is found",
        {SETTINGS: "", "reconciler/__init__.py": ""},
        ("pyproject.toml:1: import-linter refuses",),
    ),
    Plant(imports_keep_their_contracts, "imports that point down may stay", KEPT),
    Plant(
        every_folder_has_a_place,
        "modules and packages that no layer names are found",
        {**KEPT, **UNPLACED},
        ("reconciler/fleet:1: fleet has no place among the layers", "reconciler/stray.py:1: stray has no place"),
    ),
    Plant(every_folder_has_a_place, "optional and side-by-side layers count", {**KEPT, "reconciler/kube.py": ""}),
    Plant(
        pure_folders_are_under_contract,
        "a pure folder that the contract leaves out is found",
        {**KEPT, **UNPLACED},
        (f"pyproject.toml:12: The contract '{PURITY_CONTRACT}' leaves out reconciler.fleet. Remedy: add it to source",),
    ),
    Plant(pure_folders_are_under_contract, "folders that do not exist yet may be left out", KEPT),
    Plant(
        planners_do_not_know_one_another,
        "imports between planners are found under any spelling",
        {**KEPT, **ACROSS},
        (
            "reconciler/plan/gpu/__init__.py:1: The planner gpu imports the planner drain",
            "reconciler/plan/gpu/__init__.py:2: The planner gpu imports the planner drain. Remedy: move what both need",
        ),
    ),
    Plant(planners_do_not_know_one_another, "what they share stands above them", KEPT),
)
