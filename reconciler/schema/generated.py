"""The files that follow from the kinds, and from what is looked at: their paths from the root, and what they say."""

import json
import re
from typing import Any

import yaml

from reconciler.policy.json_schema import ORIGIN, combined_schema_of, overlay_schema_of, schema_of
from reconciler.policy.kind import VERSION
from reconciler.policy.rules.kinds import KINDS
from reconciler.schema.admission.page import admission_page
from reconciler.schema.crd import crd_name, crd_of
from reconciler.schema.reference import reference_page
from reconciler.schema.rights.page import reading_page, writing_page

POLICY_KINDS = tuple(kind for kind in KINDS if kind.is_policy)

SCHEMAS = "schemas"
CRDS = f"{SCHEMAS}/crds"
REFERENCE = "docs/reference/kinds.md"
RIGHTS = "deploy/observe/rbac.yaml"
ACTING_RIGHTS = "deploy/core/rbac.yaml"
ADMISSION = "deploy/core/admission.yaml"
_RIGHTS_ORIGIN = "Written by `make generate`: for any policies. `reconciler rbac PATHS` prints what some policies need."
_ACTING_ORIGIN = (
    "Written by `make generate`: for any policies, with smart pods in their default namespace. "
    "`reconciler rbac PATHS --write` prints what some policies need."
)
_ADMISSION_ORIGIN = (
    "Written by `make generate` from the rights of rbac.yaml. "
    "`reconciler rbac PATHS --admission` prints the same for some policies."
)


def generated_files() -> dict[str, str]:
    """Path to content. Kinds that no team writes into its repository have no overlays."""
    schemas = {f"{_kebab(kind.name)}.{VERSION}.json": schema_of(kind) for kind in KINDS}
    schemas |= {f"{_kebab(kind.name)}.overlay.{VERSION}.json": overlay_schema_of(kind) for kind in POLICY_KINDS}
    schemas[f"policies.{VERSION}.json"] = combined_schema_of(POLICY_KINDS)
    schemas[f"policies.overlay.{VERSION}.json"] = combined_schema_of(POLICY_KINDS, overlay=True)
    files = {f"{SCHEMAS}/{name}": as_json(schema) for name, schema in schemas.items()}
    files |= {f"{CRDS}/{crd_name(kind)}.yaml": f"# {ORIGIN}\n{as_yaml(crd_of(kind))}" for kind in KINDS}
    files[REFERENCE] = reference_page(KINDS)
    files[RIGHTS] = f"# {_RIGHTS_ORIGIN}\n{reading_page(())}"
    files[ACTING_RIGHTS] = f"# {_ACTING_ORIGIN}\n{writing_page(())}"
    files[ADMISSION] = f"# {_ADMISSION_ORIGIN}\n{admission_page(())}"
    return dict(sorted(files.items()))


def as_json(schema: dict[str, Any]) -> str:
    """As it stands in a file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def as_yaml(manifest: dict[str, Any]) -> str:
    """As it stands in a file: keys in their own order, and what stands twice is written twice."""
    return yaml.dump(manifest, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=120)


class _Plain(yaml.SafeDumper):
    """No anchors and aliases: some readers refuse them, ours among them bounds them, and a person must look them up."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
