"""Takes Karpenter's schema of a NodePool out of its Go module, into the package: a program, and a build hook of hatch.

The version is the one that the lab is built from. The schema is not kept in the repository, as it is not ours. Where no
Go can be had, no wheel is built, unless RECONCILER_WITHOUT_KARPENTER_SCHEMA=1 asks for one that does not check
NodePools against the schema; an editable installation goes without, and says so when NodePools are to be checked.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KARPENTER = "sigs.k8s.io/karpenter"
DEFINITION = "pkg/apis/crds/karpenter.sh_nodepools.yaml"
TARGET = "reconciler/defaults/karpenter.sh_nodepools.json"
MODULE = "tests/control_plane"
# Folder of the repository, folder of the wheel.
PACKAGED = {each: f"reconciler/defaults/{each}" for each in ("templates", "policies", "examples/demo")}
_WITHOUT = "RECONCILER_WITHOUT_KARPENTER_SCHEMA"


class Unavailable(Exception):
    """The schema can't be had on this machine; the message says why."""


class PackagedDefaults(BuildHookInterface):  # type: ignore[type-arg]
    """What hatch calls before it builds; named in pyproject.toml."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        is_made = make(Path(self.root))
        if self.target_name == "wheel" and version != "editable" and not is_made and not os.environ.get(_WITHOUT):
            told = "no wheel is built without Karpenter's schema"
            raise RuntimeError(f"{told}; {_WITHOUT}=1 builds one that does not check NodePools against the schema")
        if self.target_name == "wheel" and version != "editable":  # an editable one reads them where they are
            build_data["force_include"] |= PACKAGED


def make(root: Path) -> bool:
    """Writes the schema unless it is there already; whether it is there in the end."""
    target = root / TARGET
    module = root / MODULE
    if not (module / "go.mod").exists():  # a source distribution, which holds what was made before
        return target.exists()
    try:
        version = pinned_version(module)
        if not (target.exists() and json.loads(target.read_bytes()).get("version") == version):
            say(f"taking Karpenter {version}'s schema of a NodePool from its module")
            schema = _schema((_downloaded(root, version) / DEFINITION).read_text())
            _write(target, {"module": KARPENTER, "version": version, "schema": schema})
    except (Unavailable, OSError, ValueError, ImportError) as missing:
        say(f"built without Karpenter's schema, NodePools will not be checked against it: {missing}")
    return target.exists()


def pinned_version(module: Path) -> str:
    """The version in go.mod."""
    found = re.search(rf"^\s*{re.escape(KARPENTER)} (v\S+)", (module / "go.mod").read_text(), re.MULTILINE)
    if not found:
        raise Unavailable(f"{module / 'go.mod'} does not name {KARPENTER}")
    return found[1]


def say(text: str) -> None:
    """One line of progress."""
    sys.stderr.write(f"build: {text}\n")
    sys.stderr.flush()


def _downloaded(root: Path, version: str) -> Path:
    """The folder of that one module, fetched if need be; go.sum says whether it is the right one."""
    sys.path.insert(0, str(root))
    from tests.lab import toolchain  # noqa: PLC0415  only where the tests are, which a source distribution lacks

    try:
        go = toolchain.go(say)
    except toolchain.LabUnavailable as missing:
        raise Unavailable(str(missing)) from missing
    command = [str(go), "mod", "download", "-json", f"{KARPENTER}@{version}"]
    done = subprocess.run(
        command, cwd=root / MODULE, env=toolchain.environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(done.stderr.strip() or done.stdout.strip())
    return Path(json.loads(done.stdout)["Dir"])


def _schema(definition: str) -> Any:
    import yaml  # noqa: PLC0415  not needed where the schema is there already

    versions = yaml.safe_load(definition)["spec"]["versions"]
    stored = next(each for each in versions if each["storage"])
    return _without_descriptions(stored["schema"]["openAPIV3Schema"])


def _without_descriptions(schema: Any) -> Any:
    """Two thirds of the file, and nothing that is checked. A property may be called so, but its schema is no text."""
    if isinstance(schema, list):
        return [_without_descriptions(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _without_descriptions(each)
        for name, each in schema.items()
        if not (name == "description" and isinstance(each, str))
    }


def _write(target: Path, content: dict[str, Any]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    unfinished.replace(target)


if __name__ == "__main__":
    make(Path(__file__).resolve().parent)
