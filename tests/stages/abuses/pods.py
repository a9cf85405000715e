"""Attempts on pods."""

from reconciler.model import names
from tests.lab import fleet
from tests.stages.abuses.attempt import (
    NOTHING,
    POLICY,
    SECURITY,
    SERVER,
    STEPS,
    STRATEGIC,
    Attempt,
    deleted,
    made,
    patched,
)
from tests.stages.abuses.scene import TENANT, container, secured, smart_pod

_HERE = f"/api/v1/namespaces/{names.SMART_PODS_NAMESPACE}/pods"
_OURS = f"/api/v1/namespaces/{names.OWN_NAMESPACE}/pods"
_THEIRS = f"/api/v1/namespaces/{TENANT}/pods"
_RUNNING, _GATED = f"{_THEIRS}/running", f"{_THEIRS}/gated"
_ROOT = {"name": "host", "hostPath": {"path": "/"}}
_OTHER_IMAGE = {"spec": {"containers": [{"name": "main", "image": "evil/x"}]}}
_TOLERATED = [{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}]
_TOKEN = {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}


def _made(title: str, pod: dict, *stopped: str) -> Attempt:  # type: ignore[type-arg]
    return made(f"make a smart pod {title}", _HERE, pod, *(stopped or (POLICY, SECURITY)))


def _labelled(**labels: str) -> dict:  # type: ignore[type-arg]
    found = smart_pod()
    found["metadata"]["labels"] = labels
    return found


CREATED = (
    made("make a pod in another namespace", _THEIRS, fleet.Pod("x", TENANT).manifest()),
    made("make a pod in kube-system", "/api/v1/namespaces/kube-system/pods", fleet.Pod("x", "kube-system").manifest()),
    made("make a pod in the controller's namespace", _OURS, fleet.Pod("x", names.OWN_NAMESPACE).manifest()),
    made(
        "make a pod in the agents' namespace",
        f"/api/v1/namespaces/{names.AGENTS_NAMESPACE}/pods",
        fleet.Pod("x", names.AGENTS_NAMESPACE).manifest(),
    ),
    made(
        "make a pod in the Leases' namespace",
        f"/api/v1/namespaces/{names.LEASES_NAMESPACE}/pods",
        fleet.Pod("x", names.LEASES_NAMESPACE).manifest(),
    ),
    _made("as another service account", smart_pod(serviceAccountName="other")),
    _made("with a token", smart_pod(automountServiceAccountToken=True)),
    _made("that leaves the token to a default", smart_pod(automountServiceAccountToken=None)),
    _made(
        "with a token in a volume",
        smart_pod(volumes=[_TOKEN], containers=container(volumeMounts=[{"name": "token", "mountPath": "/t"}])),
    ),
    _made(
        "with the host's files",
        smart_pod(volumes=[_ROOT], containers=container(volumeMounts=[{"name": "host", "mountPath": "/h"}])),
    ),
    _made("with a secret as volume", smart_pod(volumes=[{"name": "s", "secret": {"secretName": "s"}}])),
    _made("with a secret as environment", smart_pod(containers=container(envFrom=[{"secretRef": {"name": "s"}}]))),
    _made("in the host's network", smart_pod(hostNetwork=True)),
    _made("that sees the host's processes", smart_pod(hostPID=True)),
    _made("in the host's IPC", smart_pod(hostIPC=True)),
    _made("that names its node", smart_pod(nodeName="control-plane-0")),
    _made("as root", smart_pod(securityContext={"runAsUser": 0})),
    _made("as root in its container", smart_pod(containers=secured(runAsUser=0, runAsNonRoot=False))),
    _made("that is privileged", smart_pod(containers=secured(privileged=True)), POLICY, SECURITY, SERVER),
    _made("that may become root", smart_pod(containers=secured(allowPrivilegeEscalation=True))),
    _made("with SYS_ADMIN", smart_pod(containers=secured(capabilities={"add": ["SYS_ADMIN"], "drop": ["ALL"]}))),
    _made("with all capabilities", smart_pod(containers=secured(capabilities={}))),
    _made("without seccomp", smart_pod(containers=secured(seccompProfile={"type": "Unconfined"}))),
    _made("with /proc unmasked", smart_pod(containers=secured(procMount="Unmasked")), POLICY, SECURITY, SERVER),
    _made("that runs a command", smart_pod(containers=container(command=["sh", "-c", "true"]))),
    _made("with a host port", smart_pod(containers=container(ports=[{"containerPort": 1, "hostPort": 1}]))),
    _made("with an init container", smart_pod(initContainers=container(name="init"))),
    _made("with a hook", smart_pod(containers=container(lifecycle={"postStart": {"exec": {"command": ["true"]}}}))),
    _made("of another runtime", smart_pod(runtimeClassName="unsafe"), POLICY, SERVER),
    _made("with the system's priority", smart_pod(priorityClassName="system-node-critical"), POLICY),
    _made("without its labels", _labelled(), POLICY),
    _made("that nobody looks after", _labelled(**{names.COMPONENT: names.SMART_SCHEDULER}), POLICY),
    _made("as it should be", smart_pod(), NOTHING),
)

_BINDING = {"metadata": {"name": "gated"}, "target": {"kind": "Node", "name": "gpu-0"}}
RUN = (
    made("run a command in a pod", f"{_RUNNING}/exec?command=sh", {}),
    made("attach to a pod", f"{_RUNNING}/attach", {}),
    made("forward a port of a pod", f"{_RUNNING}/portforward", {}),
    Attempt("read a pod's log", "GET", f"{_RUNNING}/log"),
    patched("add a debug container", f"{_RUNNING}/ephemeralcontainers", {"spec": {"ephemeralContainers": []}}),
    patched("resize a pod that is not elastic", f"{_RUNNING}/resize", {"spec": {}}, POLICY),
    patched("write a pod's status", f"{_RUNNING}/status", {"status": {"phase": "Failed"}}),
    made("bind a pod that waits for a gate", f"{_GATED}/binding", _BINDING, SERVER),
    made("bind a pod, by a Binding", f"/api/v1/namespaces/{TENANT}/bindings", {"metadata": {"name": "gated"}}),
)


def _edited(title: str, pod: str, patch: dict, *stopped: str) -> Attempt:  # type: ignore[type-arg]
    return patched(f"{title} a pod", pod, patch, *(stopped or (POLICY,)))


CHANGED = (
    Attempt("change the image of a pod", "PATCH", _RUNNING, _OTHER_IMAGE, STRATEGIC, (POLICY,)),
    _edited("end, by its deadline,", _RUNNING, {"spec": {"activeDeadlineSeconds": 1}}),
    Attempt("add a toleration to a pod", "PATCH", _RUNNING, _TOLERATED, STEPS, (POLICY,)),
    _edited("label", _RUNNING, {"metadata": {"labels": {"app": "other"}}}),
    _edited("label, in our domain,", _RUNNING, {"metadata": {"labels": {names.MANAGED: "true"}}}),
    _edited("annotate", _RUNNING, {"metadata": {"annotations": {"example.com/a": "c"}}}),
    _edited("take an annotation off", _RUNNING, {"metadata": {"annotations": {"example.com/a": None}}}),
    _edited("say which devices are lent to", _RUNNING, {"metadata": {"annotations": {f"{names.OURS}devices": "0"}}}),
    _edited("give a claim to", _RUNNING, {"metadata": {"annotations": {names.CLAIM: "c"}}}),
    _edited("put a finalizer on", _RUNNING, {"metadata": {"finalizers": ["example.com/stay"]}}),
    _edited(
        "give another owner to",
        _RUNNING,
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}]}},
    ),
    _edited("lift another's gate of", _GATED, {"spec": {"schedulingGates": [{"name": names.CAPACITY_GATE}]}}),
    _edited("lift all gates of", _GATED, {"spec": {"schedulingGates": []}}),
    _edited("choose the node of", _GATED, {"spec": {"nodeSelector": {"kubernetes.io/hostname": "gpu-0"}}}),
    _edited("lift our gate of", _GATED, {"spec": {"schedulingGates": [{"name": "example.com/quota"}]}}, NOTHING),
    _edited("say what is waited for on", _GATED, {"metadata": {"annotations": {names.WAITS_FOR: "a100"}}}, NOTHING),
    _edited("say when it is evicted on", _RUNNING, {"metadata": {"annotations": {names.EVICT_AT: "2026"}}}, NOTHING),
)

REMOVED = (
    deleted("delete a pod of a tenant", _RUNNING),
    deleted("delete all pods of a tenant", _THEIRS),
    deleted("delete all pods of kube-system", "/api/v1/namespaces/kube-system/pods"),
    deleted("delete the controller's pod", f"{_OURS}/reconciler-0", POLICY),
    deleted("delete all pods of the controller", _OURS),
    deleted("delete a smart pod of an older version", f"{_OURS}/smart-gpu-scheduler-a100-old", NOTHING),
    deleted("delete a smart pod", f"{_HERE}/smart-gpu-scheduler-a100-made", NOTHING),
    made(
        "evict a pod, within PodDisruptionBudgets",
        f"{_RUNNING}/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "running", "namespace": TENANT}},
        NOTHING,
    ),
)

PODS = (*CREATED, *RUN, *CHANGED, *REMOVED)
