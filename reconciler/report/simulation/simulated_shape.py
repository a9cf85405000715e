"""The JSON of simulations, as structs: what `simulate -o json` prints, and the one source of its schema."""

from typing import Annotated, Literal

import msgspec

from reconciler.report.schema.json_parts import Time, Tool


class PoolSummary(msgspec.Struct, frozen=True):
    """A pool over all the time."""

    gpu_hours: Annotated[float, msgspec.Meta(description="GPUs of its nodes, times how long they were there.")]
    gpu_hours_used: float
    micro_dollars: int
    nodes_first: int
    nodes_last: int
    nodes_most: int


class Summary(msgspec.Struct, frozen=True):
    """All that adds up over the time."""

    gpu_hours_paid: Annotated[float, msgspec.Meta(description="From the purchase of each machine until it is gone.")]
    gpu_hours: Annotated[float, msgspec.Meta(description="GPUs of nodes, times how long they were there.")]
    gpu_hours_used: float
    gpu_utilization_percent: Annotated[float | None, msgspec.Meta(description="Null where there were no GPUs.")]
    pending_gpu_minutes: Annotated[float, msgspec.Meta(description="GPUs of pods without a node, times how long.")]
    micro_dollars: int
    unpriced: Annotated[bool, msgspec.Meta(description="A machine without a declared price is not in the money.")]
    evictions: int
    disrupted_gpus: Annotated[int, msgspec.Meta(description="GPUs of the pods that were evicted.")]
    lost_pods: Annotated[int, msgspec.Meta(description="Pods on machines that died.")]
    finished_pods: int
    pending_pods: Annotated[int, msgspec.Meta(description="At the end.")]
    mean_wait_seconds: Annotated[int, msgspec.Meta(description="For a node.")]
    late_wait_seconds: Annotated[int, msgspec.Meta(description="Nineteen of twenty pods waited no longer.")]
    nodes: Annotated[int, msgspec.Meta(description="At the end.")]
    gpus: Annotated[int, msgspec.Meta(description="At the end.")]
    nodes_bought: int
    nodes_removed: int
    actions: Annotated[int, msgspec.Meta(description="Writes of the controller that took effect.")]
    held_by_guards: Annotated[int, msgspec.Meta(description="Decisions, the most at once.")]
    cycles: int
    pools: Annotated[dict[str, PoolSummary], msgspec.Meta(description='By name; "" are nodes of no pool.')]


class ActionTold(msgspec.Struct, frozen=True):
    """A write of the controller that took effect."""

    time: Time
    verb: str
    subject: str
    reason: Annotated[str, msgspec.Meta(description="A code.")]


class Sized(msgspec.Struct, frozen=True):
    """The pool of a provisioner at one moment; its nodes without those that are being deleted."""

    current_size: int
    target_size: int
    tainted: Annotated[int, msgspec.Meta(description="Nodes that are about to leave by our hand.")]
    gpus_used: int
    gpus_total: int


class PoolTold(msgspec.Struct, frozen=True):
    """A pool at one moment; its nodes without those that are being deleted."""

    nodes: int
    busy_nodes: int
    tainted: Annotated[int, msgspec.Meta(description="Nodes that are about to leave by our hand.")]
    gpus_used: int
    gpus_total: int


class StepTold(msgspec.Struct, frozen=True):
    """How things stood at a moment, and what happened since the moment before."""

    time: Time
    actions: list[ActionTold]
    actions_left_out: Annotated[int, msgspec.Meta(description="Not listed: of a run the first 10,000 are.")]
    provisioners: dict[str, Sized]
    pools: Annotated[dict[str, PoolTold], msgspec.Meta(description='By name; "" are nodes of no pool.')]
    pending_pods: Annotated[int, msgspec.Meta(description="The most at once since the moment before.")]
    pending_gpus: Annotated[int, msgspec.Meta(description="The most at once since the moment before.")]
    longest_wait_seconds: Annotated[int, msgspec.Meta(description="Of the pods that waited since the moment before.")]
    micro_dollars_per_hour: int
    bought: int
    removed: int
    evicted: int
    lost: int
    finished: int


class RevisionTold(msgspec.Struct, frozen=True):
    """Policies that came into force."""

    time: Time
    revision: str


class HappeningTold(msgspec.Struct, frozen=True):
    """A fault, or what somebody else did."""

    time: Time
    told: str


class ExpectationTold(msgspec.Struct, frozen=True):
    """What was expected, in words, and the figure it was held against."""

    told: str
    found: int
    is_met: bool


class BrokenTold(msgspec.Struct, frozen=True):
    """A rule of safety that was broken, and by which event."""

    time: Time
    event: str
    rule: str
    sentence: str


class RunTold(msgspec.Struct, frozen=True):
    """What came of the scenario with one set of policies."""

    policies: Annotated[str, msgspec.Meta(description="Where --policies named them: by the end of their path.")]
    failed: Annotated[bool, msgspec.Meta(description="An expectation was not met, or a rule of safety broken.")]
    summary: Summary
    timeline: Annotated[list[StepTold], msgspec.Meta(description="At most some 480 steps, however long the time.")]
    revisions: list[RevisionTold]
    happenings: list[HappeningTold]
    happenings_left_out: Annotated[int, msgspec.Meta(description="Of many, those that are not listed.")]
    expectations: list[ExpectationTold]
    broken: list[BrokenTold]
    troubles: Annotated[list[str], msgspec.Meta(description="Of cycles that came to nothing.")]
    notices: list[str]


class SimulatedTold(RunTold, frozen=True):
    """What came of a scenario: with the first set of policies here, with each other one in `others`."""

    format_version: Literal[1]
    tool: Tool
    name: str
    seed: int
    start: Time
    end: Time
    others: Annotated[list[RunTold], msgspec.Meta(description="In the order of --policies.")]
