"""What the product brings along: the templates that pools use by default, and Karpenter's schema of a NodePool.

A wheel has them in its package; a checkout has the templates at its root, and the schema where the build put it.
"""

import json
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import reconciler
from reconciler.model.bundle import Text

SCHEMA = "karpenter.sh_nodepools.json"
NOT_CHECKED = (
    "NodePools were not checked against Karpenter's schema, which this installation was built without; "
    "in a checkout, `python build_karpenter_schema.py` makes it"
)


@cache
def default_templates() -> tuple[Text, ...]:
    """The templates, sorted by path."""
    return tuple(sorted(_texts(_templates(), ""), key=lambda text: text.path))


@cache
def karpenter_schema() -> Any | None:
    """The OpenAPI schema of Karpenter's NodePool; without it, NOT_CHECKED is to be said once."""
    file = _package() / SCHEMA
    return json.loads(file.read_bytes())["schema"] if file.is_file() else None


def _package() -> Traversable:
    return resources.files(reconciler) / "defaults"


def _templates() -> Traversable:
    packaged = _package() / "templates"
    return packaged if packaged.is_dir() else Path(reconciler.__file__).parents[1] / "templates"


def _texts(folder: Traversable, prefix: str) -> list[Text]:
    found = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _texts(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".j2"):
            found.append(Text(prefix + entry.name, entry.read_bytes()))
    return found
