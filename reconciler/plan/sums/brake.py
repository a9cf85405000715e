"""The brake: where much of a pool is unready something is wrong that no scaling can mend, and nothing is taken away."""

MOST_UNREADY_NODES = 3
MOST_UNREADY_PERCENT = 45


def is_on(nodes: int, unready: int) -> bool:
    """More than both: a small pool may have few unready nodes that are many of it."""
    return unready > MOST_UNREADY_NODES and 100 * unready > MOST_UNREADY_PERCENT * nodes
