"""A Fault: something that goes wrong, once or again and again."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import LABEL_VALUE, NAME, Says, Unit, Within
from reconciler.model.policy.gpu_pool import CapacityType
from reconciler.model.quantity import Duration

FaultKind = Literal[
    "NodeDeath",
    "NodeNotReady",
    "KubeletDown",
    "StockOut",
    "NotOffered",
    "SlowApi",
    "LateWatch",
    "EvictionsFail",
    "SlowKubelets",
    "SlowWorkloads",
    "ControllerCrash",
    "ControllerAbsent",
]


class ScenarioFault(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Something that goes wrong."""

    fault: Annotated[FaultKind, Says("What goes wrong.")]
    at: Annotated[Duration, Says("When.")]
    lasts: Annotated[Duration | None, Says("For how long; absent, until the end.")] = None
    every: Annotated[Duration | None, Says("How often it happens again; absent, once.")] = None
    pool: Annotated[
        str, Says("NodeDeath, NodeNotReady and KubeletDown: of which NodePool; absent, of any."), Within(1, 253), NAME
    ] = ""
    count: Annotated[
        int, Says("NodeDeath, NodeNotReady and KubeletDown: how many at once."), Within(1, 10_000), Unit("nodes")
    ] = 1
    instance_type: Annotated[
        str,
        Says("StockOut and NotOffered: which instance type is not to be had; absent, any."),
        Within(1, 63),
        LABEL_VALUE,
    ] = ""
    zone: Annotated[
        str, Says("StockOut and NotOffered: in which zone; absent, in any."), Within(1, 63), LABEL_VALUE
    ] = ""
    capacity_type: Annotated[CapacityType | None, Says("StockOut and NotOffered: bought how; absent, in any way.")] = (
        None
    )
    after_writes: Annotated[
        int, Says("ControllerCrash: after how many more writes; absent, at once."), Within(0, 10_000), Unit("writes")
    ] = 0
    delay: Annotated[Duration, Says("SlowApi, LateWatch, SlowKubelets and SlowWorkloads: by how much.")] = Duration(
        5_000
    )
