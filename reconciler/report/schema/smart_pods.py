"""The page of a smart pod's life: its phases and what leads from one to the next, and how far its machine has come."""

from collections.abc import Iterator

from reconciler.plan.capacity.machines import RULES
from reconciler.plan.smart_pods.phases import TABLE, PhaseEvent, SmartPodPhase

_OPENING = """\
# Phases of smart pods

What a smart pod is, what happens to it, and what it is then. `Pending`, `Scheduled` and `Failed` stand on it in the
annotation `gpu.scheduling/phase`; `NodeReady` and `Completed` last no longer than it takes to delete it, and its
NodeClaim and node stay. What is not in the table is refused, by name, and changes nothing. This page is written by
`make generate`.
"""
_MACHINE = """\
How far the machine has come that Karpenter buys for it is read from the NodeClaim; the first that applies counts. A
NodeClaim never says that it failed: it is gone, then.
"""


def smart_pods_page() -> str:
    """A diagram, a table, and the machine's own."""
    return "\n".join((_OPENING, *_diagram(), "", *_table(), "", _MACHINE, *_machine())) + "\n"


def _diagram() -> Iterator[str]:
    yield from ("```mermaid", "stateDiagram-v2", f"    [*] --> {SmartPodPhase.PENDING.value}")
    for (phase, event), after in TABLE.items():
        yield f"    {phase.value} --> {after.value}: {event.value}"
    yield from (f"    {SmartPodPhase.COMPLETED.value} --> [*]", "```")


def _table() -> Iterator[str]:
    yield f"| what happens | {' | '.join(each.value for each in SmartPodPhase)} |"
    yield "|---" * (1 + len(SmartPodPhase)) + "|"
    for event in PhaseEvent:
        after = (TABLE.get((phase, event)) for phase in SmartPodPhase)
        yield f"| {event.value} | {' | '.join(each.value if each else 'refused' for each in after)} |"


def _machine() -> Iterator[str]:
    yield from ("| machine | its NodeClaim |", "|---|---|")
    yield from (f"| {rule.phase} | {rule.text} |" for rule in RULES)
