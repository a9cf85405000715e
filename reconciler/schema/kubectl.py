"""The command line by which kubectl writes everything that a plan is made from into one file."""

import shlex
from collections.abc import Sequence

from reconciler.model import names
from reconciler.model.desired import Desired
from reconciler.schema.rights.reading import reading_rights

CLUSTER_FILE = "cluster.json"


def resources(
    wishes: Sequence[Desired], own_namespace: str = names.OWN_NAMESPACE, namespace: str = ""
) -> tuple[str, ...]:
    """What to list, as kubectl names resources: in a namespace, or else in the whole cluster."""
    rights = [right for right in reading_rights(wishes, own_namespace) if right.namespace == namespace]
    named = {(right.group, plural) for right in rights for plural in right.resources}
    return tuple(sorted(f"{plural}.{group}" if group else plural for group, plural in named))


def kubectl_line(
    wishes: Sequence[Desired], plan_options: Sequence[str], own_namespace: str = names.OWN_NAMESPACE
) -> str:
    """One line for a shell: kubectl writes the file, and `reconciler plan` reads it.

    kubectl refuses a list with a kind that the API server does not serve, so that the line first asks which kinds are
    served. Leases are listed in our namespaces only: the rights to look cover no others. The file then has all there is
    of every kind, which `--complete` says.
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
