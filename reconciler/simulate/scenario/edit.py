"""An Edit: what a person, or a tool other than ours, does to an object of the cluster."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import LABEL_KEY, NAME, MergeKey, Says, Shaped, Unit, Within
from reconciler.model.policy.gpu_pool import PoolTaint
from reconciler.model.quantity import Duration
from reconciler.simulate.scenario.cluster import Labels

EditedKind = Literal["Node", "NodePool", "NodeClaim", "Pod", "PodDisruptionBudget", "Namespace"]

Annotations = Annotated[dict[str, Annotated[str, Within(most=4_096)]], LABEL_KEY]


class ScenarioEdit(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Some objects, and what is done to them: a cordon, a freeze, a mark of a driver upgrade, a budget that comes."""

    at: Annotated[Duration, Says("When.")]
    lasts: Annotated[Duration | None, Says("After which it is taken back; absent, never.")] = None
    every: Annotated[Duration | None, Says("How often it is done again; absent, once.")] = None
    kind: Annotated[EditedKind, Says("Kind of the objects.")]
    name: Annotated[
        str, Says("Name of the object; of a PodDisruptionBudget, that of its workload."), Within(1, 253), NAME
    ] = ""
    pool: Annotated[str, Says("Where there is no name: of which NodePool they are."), Within(1, 253), NAME] = ""
    count: Annotated[int, Says("Where there is no name: how many."), Within(1, 10_000), Unit("objects")] = 1
    having: Annotated[Labels, Says("Where there is no name: labels that they have.")] = msgspec.field(
        default_factory=dict
    )
    order: Annotated[
        Literal["ByChance", "Oldest", "Youngest"], Says("Where there is no name: who comes first, if not all of them.")
    ] = "ByChance"
    labels: Annotated[Labels, Says("Labels that it sets.")] = msgspec.field(default_factory=dict)
    annotations: Annotated[Annotations, Says("Annotations that it sets.")] = msgspec.field(default_factory=dict)
    taints: Annotated[
        list[PoolTaint], Says("Taints that it adds to a node."), Within(most=50), MergeKey(("key", "effect"))
    ] = msgspec.field(default_factory=list)
    unschedulable: Annotated[bool | None, Says("Whether a node is cordoned.")] = None
    max_unavailable: Annotated[
        int | None,
        Says("Of a PodDisruptionBudget, which is made where there is none."),
        Within(0, 100_000),
        Unit("pods"),
    ] = None
    lifts: Annotated[
        str, Says("A scheduling gate that it lifts from a pod."), Shaped(LABEL_KEY.pattern, LABEL_KEY.words)
    ] = ""
    deleted: Annotated[bool, Says("Whether it is deleted.")] = False
