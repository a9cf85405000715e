"""Generated files about kinds, rights and the second scheduler: paths from the root of the repository, and content."""

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any

import yaml

from reconciler.model import names
from reconciler.model.desired import Desired
from reconciler.policy.json_schema import ORIGIN, combined_schema_of, overlay_schema_of, schema_of
from reconciler.policy.rules.kinds import KINDS, POLICY_KINDS
from reconciler.policy.shape import VERSION
from reconciler.schema.admission import admission_page
from reconciler.schema.crd import crd_name, crd_of
from reconciler.schema.reference import reference_page
from reconciler.schema.rights.page import agents_page, extender_page, reading_page, webhook_page, writing_page
from reconciler.schema.rights.rules import reading_rights
from reconciler.schema.scheduler import deployed_configuration

SCHEMAS = "schemas"
CRDS = f"{SCHEMAS}/crds"
REFERENCE = "docs/reference/kinds.md"
RIGHTS = "deploy/observe/rbac.yaml"
ACTING_RIGHTS = "deploy/core/rbac.yaml"
WEBHOOK_RIGHTS = "deploy/webhook/rbac.yaml"
EXTENDER_RIGHTS = "deploy/scheduler/rbac.yaml"
AGENTS_RIGHTS = "deploy/pressure/rbac.yaml"
SCHEDULER = "deploy/scheduler/configuration.yaml"
ADMISSION = "deploy/core/admission.yaml"
_RIGHTS_ORIGIN = (
    "Written by `make generate`: for any policies. `reconciler rbac PATHS` prints the rights for given policies."
)
_ACTING_ORIGIN = (
    "Written by `make generate`: for any policies, with smart pods in their default namespace. "
    "`reconciler rbac PATHS --write` prints the rights for given policies."
)
_WEBHOOK_ORIGIN = "Written by `make generate`; `reconciler rbac --webhook` prints the same for another namespace."
_EXTENDER_ORIGIN = "Written by `make generate`; `reconciler rbac --extender` prints the same for another namespace."
_AGENTS_ORIGIN = "Written by `make generate`; `reconciler rbac --agents` prints the same for another namespace."
_SCHEDULER_ORIGIN = "Written by `make generate`: the configuration of the second scheduler, a stock kube-scheduler."
_ADMISSION_ORIGIN = (
    "Written by `make generate` from the rights of rbac.yaml. "
    "`reconciler rbac PATHS --admission` prints the same for given policies."
)


def generated_files() -> dict[str, str]:
    """Path to content. Kinds that teams do not write into their repository have no overlays."""
    schemas = {f"{_kebab(kind.name)}.{VERSION}.json": schema_of(kind) for kind in KINDS}
    schemas |= {f"{_kebab(kind.name)}.overlay.{VERSION}.json": overlay_schema_of(kind) for kind in POLICY_KINDS}
    schemas[f"policies.{VERSION}.json"] = combined_schema_of(POLICY_KINDS)
    schemas[f"policies.overlay.{VERSION}.json"] = combined_schema_of(POLICY_KINDS, overlay=True)
    files = {f"{SCHEMAS}/{name}": as_json(schema) for name, schema in schemas.items()}
    files |= {f"{CRDS}/{crd_name(kind)}.yaml": f"# {ORIGIN}\n{as_yaml(crd_of(kind))}" for kind in KINDS}
    files[REFERENCE] = reference_page(KINDS)
    files[RIGHTS] = f"# {_RIGHTS_ORIGIN}\n{reading_page(())}"
    files[ACTING_RIGHTS] = f"# {_ACTING_ORIGIN}\n{writing_page(())}"
    files[WEBHOOK_RIGHTS] = f"# {_WEBHOOK_ORIGIN}\n{webhook_page()}"
    files[EXTENDER_RIGHTS] = f"# {_EXTENDER_ORIGIN}\n{extender_page()}"
    files[AGENTS_RIGHTS] = f"# {_AGENTS_ORIGIN}\n{agents_page()}"
    files[SCHEDULER] = f"# {_SCHEDULER_ORIGIN}\n{as_yaml(deployed_configuration())}"
    files[ADMISSION] = f"# {_ADMISSION_ORIGIN}\n{admission_page(())}"
    return dict(sorted(files.items()))


def as_json(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def as_yaml(manifest: dict[str, Any]) -> str:
    """The manifest as file content: keys in their own order, without aliases."""
    return yaml.dump(manifest, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=120)


class _Plain(yaml.SafeDumper):
    """No anchors and aliases: some readers refuse them, ours limits them, and people have to look them up."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


# --- The command line with which kubectl writes all inputs of a plan from a cluster into one file.

CLUSTER_FILE = "cluster.json"


def resources(
    wishes: Sequence[Desired], own_namespace: str = names.OWN_NAMESPACE, namespace: str = ""
) -> tuple[str, ...]:
    """Resources to list, as kubectl names them: in a namespace, or in the whole cluster."""
    rights = [right for right in reading_rights(wishes, own_namespace) if right.namespace == namespace]
    named = {(right.group, plural) for right in rights for plural in right.resources}
    return tuple(sorted(f"{plural}.{group}" if group else plural for group, plural in named))


def kubectl_line(
    wishes: Sequence[Desired], plan_options: Sequence[str], own_namespace: str = names.OWN_NAMESPACE
) -> str:
    """A shell command line: kubectl writes the file, and `reconciler plan` reads it.

    kubectl refuses a list with a kind that the API server does not serve, so the line first lists the served kinds.
    Leases are listed in our namespaces only, because the rights to observe cover no others. The file then lists all
    objects of every kind, as `--complete` states.
    """
    everywhere = "|".join(resources(wishes, own_namespace))
    served = f"kubectl api-resources --verbs=list -o name | grep -xE '{everywhere}' | paste -sd, -"
    ours = (own_namespace, names.LEASES_NAMESPACE)
    in_namespaces = [
        f"kubectl get {','.join(resources(wishes, own_namespace, each))} -n {shlex.quote(each)} -o json"
        for each in ours
    ]
    named = [] if own_namespace == names.OWN_NAMESPACE else ["--namespace", own_namespace]
    plan = shlex.join(["reconciler", "plan", *plan_options, "--cluster", CLUSTER_FILE, "--complete", *named])
    lists = " && ".join([f'kubectl get "$({served})" -A -o json', *in_namespaces])
    return f"{{ {lists}; }} > {CLUSTER_FILE} && {plan}"
