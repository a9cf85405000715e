"""ChangeGuard: how much a change may take away at once."""

from typing import Annotated

import msgspec

from reconciler.model.fields import Refers, Says, Shaped, Unit, Within


class Ceiling(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Limits; one that is absent does not limit."""

    max_removed_nodes: Annotated[
        int | None, Says("Most nodes removed that were empty."), Within(0, 100_000), Unit("nodes")
    ] = None
    max_removed_percent: Annotated[
        int | None,
        Says(
            "Most nodes of a pool removed, in percent of those it has as the plan or hour begins; one may go, unless 0."
        ),
        Within(0, 100),
        Unit("%"),
    ] = None
    max_disrupted_gpus: Annotated[
        int | None,
        Says("Most GPUs in use whose pods are moved, by us or by Karpenter."),
        Within(0, 1_000_000),
        Unit("GPUs"),
    ] = msgspec.field(name="maxDisruptedGPUs", default=None)
    max_deleted_node_pools: Annotated[
        int | None, Says("Most NodePools deleted."), Within(0, 1_000), Unit("NodePools")
    ] = None


class ChangeGuard(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Holds back what would remove or disrupt more than it allows, until it is approved."""

    suspend: Annotated[bool, Says("Set aside: it guards nothing until this is taken back.")] = False
    pool_names: Annotated[
        list[Annotated[str, Refers("GpuPool", all_as_star=True)]],
        Says('The pools it guards; "*" for all.'),
        Within(1, 1000),
    ]
    cluster_uid: Annotated[
        str | None,
        Says("The cluster it is for, by the uid of its namespace kube-system; any other is refused."),
        Shaped(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "a uid, such as 9b3c6f0e-52d1-4c0a-9f5e-0d6f6a1c7e21"),
    ] = msgspec.field(name="clusterUID", default=None)
    per_plan: Annotated[Ceiling, Says("Limits of one plan.")] = Ceiling()
    per_hour: Annotated[Ceiling, Says("Limits of any hour.")] = Ceiling()
