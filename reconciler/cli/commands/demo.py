"""`reconciler demo`: the size of an example pool, decided as its load changes."""

import click

from reconciler import __version__
from reconciler.model.kinds.node_provisioner import NodeProvisioner
from reconciler.model.pool_use import Use
from reconciler.plan.scaling.size import Size, decide_size

GPUS_PER_NODE = 8
WISH = NodeProvisioner(pool_name="a100-training", min_size=60, max_size=160, min_gpu_utilization_percent=80)
# What happens, nodes, of these busy.
STORY = (
    ("the evening begins", 120, 80),
    ("20 empty nodes left, jobs ended", 100, 60),
    ("instead, more jobs came", 120, 88),
    ("a quiet weekend", 75, 12),
    ("every node at work", 120, 120),
)


@click.command()
def command() -> None:
    """Decide the size of an example pool, as time passes. Needs no cluster."""
    click.echo(f"reconciler {__version__}: how many nodes should this pool keep?\n")
    click.echo(
        f"  {WISH.pool_name}: {GPUS_PER_NODE} GPUs a node, {WISH.min_size} to {WISH.max_size} nodes, "
        f"at least {WISH.min_gpu_utilization_percent} % of the GPUs in use\n"
    )
    rows = [("when", "nodes", "GPUs in use", "target", "why")]
    for when, nodes, busy in STORY:
        size = decide_size(_use(nodes, busy), WISH)
        rows.append(
            (when, str(nodes), f"{busy * GPUS_PER_NODE} of {nodes * GPUS_PER_NODE}", str(size.target), _why(size))
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  " + "  ".join(map(str.ljust, row, widths)).rstrip())
    click.echo("\nNothing was read from a cluster, and nothing was changed.")


def _use(nodes: int, busy: int) -> Use:
    """Nodes that are wholly used or wholly empty, as in the examples of the design."""
    return Use(
        nodes=nodes,
        busy_nodes=busy,
        gpus_used=busy * GPUS_PER_NODE,
        gpus_total=nodes * GPUS_PER_NODE,
        gpus_per_node=GPUS_PER_NODE,
    )


def _why(size: Size) -> str:
    return f"{size.reason}: {size.surplus} can go" if size.surplus else size.reason
