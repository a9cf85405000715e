"""Pods that were evicted lately, as tests/cases/scaling/ describes them, and pods that may not stand together."""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.cluster.pod import Affinity, Pod, PodTerm, PodTerms
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.drain_memory import Evicted
from reconciler.plan.drain.memory import written
from reconciler.plan.recent_evictions import owner_of

Json = dict[str, Any]

OWNERS = {"DaemonSet": ("DaemonSet", "exporter", "uid-owner"), "web": ("ReplicaSet", "web", "uid-web")}
ONE_A_ZONE = Affinity(pod_anti_affinity=PodTerms((PodTerm(names.ZONE, LabelSelector({"app": "web"})),)))


def leaving(pod: Pod, at: Instant) -> Pod:
    """On its way out since then."""
    return msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, deletion_timestamp=timestamp(at))
    )


def remembered(pod: Pod, said: Json, at: Instant) -> Evicted:
    """`home` is the node on which it was to find a place."""
    return Evicted(at, pod.title, pod.metadata.uid, pod.node, "a100", at, written(pod), owner_of(pod), said["home"])
