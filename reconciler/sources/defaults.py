"""What the product brings along: templates that pools use by default, Karpenter's schema of a NodePool, and the demo.

A wheel has them in its package; a checkout has them at its root, and the schema where the build put it.
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
    return tuple(sorted(_texts(_folder("templates"), "", ".j2"), key=_path))


@cache
def example_policies() -> tuple[Text, ...]:
    """The example fleet, sorted by path: policies/base/guard.yaml."""
    return tuple(sorted(_texts(_folder("policies"), "policies/", ".yaml"), key=_path))


def demo_scenario() -> Text:
    """The scenario that the demo plays."""
    return Text("scenario.yaml", (_folder("examples") / "demo" / "scenario.yaml").read_bytes())


@cache
def karpenter_schema() -> Any | None:
    """The OpenAPI schema of Karpenter's NodePool; without it, NOT_CHECKED is to be said once."""
    file = _package() / SCHEMA
    return json.loads(file.read_bytes())["schema"] if file.is_file() else None


def _package() -> Traversable:
    return resources.files(reconciler) / "defaults"


def _folder(name: str) -> Traversable:
    packaged = _package() / name
    return packaged if packaged.is_dir() else Path(reconciler.__file__).parents[1] / name


def _texts(folder: Traversable, prefix: str, ending: str) -> list[Text]:
    texts = []
    for entry in folder.iterdir():
        if entry.is_dir():
            texts += _texts(entry, f"{prefix}{entry.name}/", ending)
        elif entry.name.endswith(ending):
            texts.append(Text(prefix + entry.name, entry.read_bytes()))
    return texts


def _path(text: Text) -> str:
    return text.path
