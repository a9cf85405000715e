"""DrainPolicy: which running nodes may be emptied, and how many at once."""

from typing import Annotated

import msgspec

from reconciler.model.fields import Refers, Says, Unit, Within
from reconciler.model.policy.gpu_pool import Resources
from reconciler.model.policy.window import Window
from reconciler.model.quantity import Duration


class DrainPolicy(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Lets nodes that are little used be emptied and removed; a pool that no DrainPolicy names is left alone."""

    suspend: Annotated[bool, Says("Set aside: nothing is planned for it until this is taken back.")] = False
    pool_names: Annotated[
        list[Annotated[str, Refers("GpuPool", all_as_star=True)]],
        Says('The pools it is for; "*" for all.'),
        Within(1, 1000),
    ]
    utilization_threshold_percent: Annotated[
        int, Says("A node is a candidate at this share of its GPUs requested, or below."), Within(0, 100), Unit("%")
    ] = 50
    max_drain_parallelism: Annotated[
        int, Says("Most nodes with pods on them that are emptied at once."), Within(1, 10_000), Unit("nodes")
    ] = 4
    max_scale_down_parallelism: Annotated[
        int,
        Says(
            "Most nodes that leave at once, with pods or without. Nodes that a NodeProvisioner removes count, and "
            "wait for no slot."
        ),
        Within(1, 10_000),
        Unit("nodes"),
    ] = 10
    scale_down_unneeded_time: Annotated[Duration, Says("How long a node must be a candidate.")] = Duration(600_000)
    scale_down_unready_time: Annotated[Duration, Says("How long an unready node must be a candidate.")] = Duration(
        1_200_000
    )
    max_graceful_termination_seconds: Annotated[
        int, Says("Longest grace a pod is given; a longer wish is cut."), Within(0, 86_400), Unit("s")
    ] = 600
    recent_eviction_seconds: Annotated[
        int, Says("How long an evicted pod without a successor is counted as demand."), Within(0, 3_600), Unit("s")
    ] = 300
    system_pod_timeout: Annotated[
        Duration,
        Says("How long after its creation a kube-system pod without a PodDisruptionBudget keeps its node."),
    ] = Duration(3_600_000)
    simulation_time_bound: Annotated[Duration, Says("How much of a cycle may go into finding candidates.")] = Duration(
        10_000
    )
    cluster_min: Annotated[
        Resources,
        Says(
            "What the cluster keeps in all of cpu, memory or nvidia.com/gpu, whoever removes a node; the largest "
            "amount of any DrainPolicy holds."
        ),
    ] = msgspec.field(default_factory=dict)
    windows: Annotated[
        list[Window],
        Says("When drains may start; without any, always. A NodeProvisioner has windows of its own for empty nodes."),
        Within(most=50),
    ] = msgspec.field(default_factory=list)
