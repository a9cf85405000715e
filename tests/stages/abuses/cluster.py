"""Attempts on rights, on what judges writes, and on everything else."""

from reconciler.model import names
from tests.stages.abuses.attempt import (
    NOTHING,
    POLICY,
    Attempt,
    deleted,
    made,
    patched,
    read,
)
from tests.stages.abuses.scene import TENANT, config_map, event, lease, priority_class

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_OURS, _THEIRS = f"/api/v1/namespaces/{names.OWN_NAMESPACE}", f"/api/v1/namespaces/{TENANT}"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces"
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_GROUP = "/apis/gpu.scheduling/v1"
_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
_BUDGETS = f"/apis/policy/v1/namespaces/{TENANT}/poddisruptionbudgets"
_ADMIN = {
    "metadata": {"name": "x"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "name": "reconciler", "namespace": names.OWN_NAMESPACE}],
}
_ALL = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
_NAMED = {"metadata": {"name": "x"}}
_PRIVILEGED = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}

RIGHTS = (
    read("read all secrets", "/api/v1/secrets"),
    read("read secrets of its namespace", f"{_OURS}/secrets"),
    read("read the token of the repository", f"{_OURS}/secrets/reconciler-git"),
    made("make a ClusterRoleBinding", f"{_RBAC}/clusterrolebindings", _ADMIN),
    made("make a RoleBinding in kube-system", f"{_RBAC}/namespaces/kube-system/rolebindings", _ADMIN),
    made("make a ClusterRole", f"{_RBAC}/clusterroles", {**_NAMED, **_ALL}),
    patched("widen its own role", f"{_RBAC}/clusterroles/reconciler-enforce", _ALL),
    deleted("delete another's role", f"{_RBAC}/clusterroles/cluster-admin"),
    made("get a token of another account", f"{_OURS}/serviceaccounts/default/token", {"spec": {}}),
    made("get a token of its own that lasts", f"{_OURS}/serviceaccounts/reconciler/token", {"spec": {}}),
    made("make a service account", f"{_OURS}/serviceaccounts", _NAMED),
    made(
        "ask for a client certificate",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        {**_NAMED, "spec": {"request": "eA==", "signerName": "kubernetes.io/kube-apiserver-client", "usages": []}},
    ),
    deleted("delete a policy that limits it", f"{_ADMISSION}/validatingadmissionpolicies/reconciler-pods"),
    deleted("unbind a policy that limits it", f"{_ADMISSION}/validatingadmissionpolicybindings/reconciler-pods"),
    patched(
        "switch a policy that limits it off",
        f"{_ADMISSION}/validatingadmissionpolicybindings/reconciler-pods",
        {"spec": {"validationActions": ["Audit"]}},
    ),
    made("make a webhook", f"{_ADMISSION}/mutatingwebhookconfigurations", _NAMED),
    made("make an API service", "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": "v1.x"}}),
    made("make a definition", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"metadata": {"name": "x.y"}}),
)

NAMESPACES = (
    made("make a namespace", "/api/v1/namespaces", _NAMED),
    deleted("delete a namespace", _THEIRS),
    patched("lift Pod Security of smart pods", f"/api/v1/namespaces/{names.SMART_PODS_NAMESPACE}", _PRIVILEGED),
    patched("lift Pod Security of its own namespace", _OURS, _PRIVILEGED),
    patched("thaw what is frozen", _OURS, {"metadata": {"annotations": {names.FROZEN_UNTIL: None}}}),
    deleted("delete a quota", f"/api/v1/namespaces/{names.SMART_PODS_NAMESPACE}/resourcequotas/no-system-priority"),
    deleted(
        "delete a network policy",
        f"/apis/networking.k8s.io/v1/namespaces/{names.SMART_PODS_NAMESPACE}/networkpolicies/no-traffic",
    ),
)

WORKLOADS = (
    made("make a Deployment", f"/apis/apps/v1/namespaces/{TENANT}/deployments", _NAMED),
    made("make a DaemonSet in its namespace", f"/apis/apps/v1/namespaces/{names.OWN_NAMESPACE}/daemonsets", _NAMED),
    made("make a Job", f"/apis/batch/v1/namespaces/{TENANT}/jobs", _NAMED),
    made("make a CronJob", f"/apis/batch/v1/namespaces/{TENANT}/cronjobs", _NAMED),
    patched(
        "change the controller's image",
        f"/apis/apps/v1/namespaces/{names.OWN_NAMESPACE}/statefulsets/reconciler",
        {"spec": {"replicas": 0}},
    ),
    made("make a Service", f"{_THEIRS}/services", _NAMED),
    made("make a PersistentVolume", "/api/v1/persistentvolumes", _NAMED),
    deleted("delete a volume claim", f"{_THEIRS}/persistentvolumeclaims/x"),
    made("make a PodDisruptionBudget", _BUDGETS, _NAMED),
    deleted("delete a tenant's PodDisruptionBudgets", _BUDGETS),
    made("make a ResourceClaim", f"/apis/resource.k8s.io/v1/namespaces/{TENANT}/resourceclaims", _NAMED),
)

PRIORITIES = (
    made("make a default PriorityClass", _CLASSES, priority_class("x", -7, globalDefault=True), POLICY),
    made("make a PriorityClass above workloads", _CLASSES, priority_class("x", 1_000_000_000), POLICY),
    patched("make a PriorityClass the default", f"{_CLASSES}/ours", {"globalDefault": True}, POLICY),
    patched("change another's PriorityClass", f"{_CLASSES}/theirs", {"description": "x"}, POLICY),
    patched(
        "take another's PriorityClass over",
        f"{_CLASSES}/theirs",
        {"metadata": {"labels": {names.MANAGED: "true"}}},
        POLICY,
    ),
    deleted("delete another's PriorityClass", f"{_CLASSES}/theirs", POLICY),
    made("make a PriorityClass below workloads", _CLASSES, priority_class("x", -7), NOTHING),
    deleted("delete a PriorityClass of ours", f"{_CLASSES}/ours", NOTHING),
)

KEPT = (
    made(
        "make a Lease that is not the leader's",
        f"{_LEASES}/{names.OWN_NAMESPACE}/leases",
        lease("x", names.OWN_NAMESPACE),
        POLICY,
    ),
    Attempt(
        "take a Lease that is not the leader's",
        "PUT",
        f"{_LEASES}/{names.OWN_NAMESPACE}/leases/others",
        lease("others", names.OWN_NAMESPACE),
        stopped_by=(POLICY,),
    ),
    made("take the Lease of a scheduler", f"{_LEASES}/kube-system/leases", lease("x", "kube-system")),
    made("say that a node lives", f"{_LEASES}/kube-node-lease/leases", lease("x", "kube-node-lease")),
    read("read ConfigMaps elsewhere", "/api/v1/namespaces/kube-system/configmaps"),
    made("make a ConfigMap that is not its own", f"{_OURS}/configmaps", config_map("x", names.OWN_NAMESPACE), POLICY),
    patched("change another's ConfigMap", f"{_OURS}/configmaps/theirs", {"data": {"a": "c"}}, POLICY),
    deleted("delete another's ConfigMap", f"{_OURS}/configmaps/theirs", POLICY),
    made("make an Event as someone else", _EVENTS, event("kubelet"), POLICY),
    patched("change a policy", f"{_GROUP}/gpupools/x", {"spec": {"mode": "Observe"}}),
    made("approve a change", f"{_GROUP}/changeapprovals", _NAMED),
    deleted("delete a guard", f"{_GROUP}/changeguards/x"),
    Attempt(
        "take the Lease of the leader",
        "PUT",
        f"{_LEASES}/{names.OWN_NAMESPACE}/leases/reconciler",
        lease("reconciler", names.OWN_NAMESPACE),
        stopped_by=(NOTHING,),
    ),
    patched("change its memory", f"{_OURS}/configmaps/reconciler-memory", {"data": {"a": "c"}}, NOTHING),
    made("make an Event of its own", _EVENTS, event(names.EVENT_SOURCE), NOTHING),
    read("read all pods", "/api/v1/pods", NOTHING),
    read("read ConfigMaps of its namespace", f"{_OURS}/configmaps", NOTHING),
)

CLUSTER = (*RIGHTS, *NAMESPACES, *WORKLOADS, *PRIORITIES, *KEPT)
