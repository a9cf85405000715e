"""Flags of Cluster Autoscaler about nodes that go, without a field of their own: what is done instead of each."""

from collections.abc import Iterator

from reconciler.importer.autoscaler.flags import Flags

_BY_ANNOTATION = (
    'pods of that kind keep their node, unless they carry cluster-autoscaler.kubernetes.io/safe-to-evict: "true"'
)
_DAEMONS = "pods of DaemonSets and static pods never count"
_ALL_NODES = "all nodes are looked at, as far as simulationTimeBound lets them"
_BRAKE = "nothing is drained in a pool of which more than 3 nodes and more than 45 % are not ready"
_TAINTS = "up to 200 candidates are tainted in one plan"
_EVICTED_LAST = "DaemonSet pods are evicted last, when nothing else is left on the node, and from empty nodes too"
_DELETED = "a node is deleted once it was empty for a minute; delay-deletion annotations are not read"
INSTEAD = {
    "cordon-node-before-terminating": "a node that is drained has the NoSchedule taint gpu.scheduling/draining",
    "daemonset-eviction-for-empty-nodes": _EVICTED_LAST,
    "daemonset-eviction-for-occupied-nodes": _EVICTED_LAST,
    "drain-priority-config": "each pod has the grace that it asks for, up to maxGracefulTerminationSeconds: write the "
    "longest there",
    "expendable-pods-priority-cutoff": "pods of any priority need another place before they are evicted",
    "force-delete-failed-nodes": "Karpenter ends machines that never become nodes",
    "force-delete-unregistered-nodes": "Karpenter ends machines that never become nodes",
    "ignore-daemonsets-utilization": _DAEMONS,
    "ignore-mirror-pods-utilization": _DAEMONS,
    "max-bulk-soft-taint-count": _TAINTS,
    "max-bulk-soft-taint-time": _TAINTS,
    "max-nodes-total": "write limits into the GpuPools, and maxSize into their NodeProvisioners",
    "max-pod-eviction-time": "evictions are tried again until nothing went on for maxGracefulTerminationSeconds and "
    "two minutes",
    "max-total-unready-percentage": _BRAKE,
    "min-replica-count": "write a PodDisruptionBudget for what must keep so many pods",
    "node-delete-delay-after-taint": _DELETED,
    "node-deletion-batcher-interval": _DELETED,
    "node-deletion-delay-timeout": _DELETED,
    "node-group-auto-discovery": "write minSize and maxSize of each group into the NodeProvisioner of the pool that "
    "takes its place",
    "ok-total-unready-count": _BRAKE,
    "scale-down-candidates-pool-min-count": _ALL_NODES,
    "scale-down-candidates-pool-ratio": _ALL_NODES,
    "scale-down-delay-after-add": "a node that has come settles for a minute, and while pods wait for nodes of a pool "
    "none of it begins to be drained",
    "scale-down-delay-after-delete": "nothing waits after a deletion: how many nodes go is limited by the two "
    "parallelisms, and by a ChangeGuard",
    "scale-down-delay-after-failure": "a node that could not be emptied is left alone for 5 min, then 10, 20 and 40",
    "scale-down-delay-type-local": "no delay holds for the whole cluster",
    "scale-down-non-empty-candidates-count": _ALL_NODES,
    "skip-nodes-with-custom-controller-pods": _BY_ANNOTATION,
    "skip-nodes-with-local-storage": _BY_ANNOTATION,
    "unremovable-node-recheck-timeout": _ALL_NODES,
}
# Where one of these is true, it says what is done anyway.
_AS_HERE = frozenset(
    {
        "daemonset-eviction-for-empty-nodes",
        "daemonset-eviction-for-occupied-nodes",
        "ignore-daemonsets-utilization",
        "ignore-mirror-pods-utilization",
        "scale-down-delay-type-local",
        "skip-nodes-with-custom-controller-pods",
        "skip-nodes-with-local-storage",
    }
)
_NODES, _OF_CPU = "nodes", "scale-down-utilization-threshold"
EXPLAINED_FLAGS = frozenset({*INSTEAD, _NODES, _OF_CPU})


def notes(flags: Flags) -> Iterator[tuple[str, str]]:
    """A sentence and a remedy for each flag that a DrainPolicy can't say."""
    for name in sorted(flags.of.keys() & INSTEAD.keys()):
        if name in _AS_HERE and flags.is_true(name):
            continue
        for value in sorted(set(flags.of[name])) if name == "node-group-auto-discovery" else [flags.value(name)]:
            yield f"--{name}={value} has no counterpart", INSTEAD[name]
    for value in flags.of.get(_NODES, ()):
        yield _of_group(value)
    if (value := flags.value(_OF_CPU)) is not None:
        text = (
            f"--{_OF_CPU}={value} is not taken over: Cluster Autoscaler judges nodes without GPUs by it, and no other"
        )
        yield text, "spec.utilizationThresholdPercent says what --scale-down-gpu-utilization-threshold says"


def _of_group(value: str) -> tuple[str, str]:
    """least:most:name, where the name may have colons of its own."""
    least, _, rest = value.partition(":")
    most, _, group = rest.partition(":")
    if not (least.isdigit() and most.isdigit() and group):
        return f"--{_NODES}={value} can't be read", "write minSize and maxSize into the NodeProvisioner of its pool"
    sizes = f"minSize: {least} and maxSize: {most}"
    return (
        f"--{_NODES}={value} keeps {least} to {most} nodes of {group}, which a DrainPolicy can't say",
        f"write {sizes} into the NodeProvisioner of the pool that takes its place",
    )
