"""The imagined cluster itself is sound: no GPU is given to two pods."""

from collections.abc import Iterator

from reconciler.simulate.invariants.invariant import InvariantContext
from reconciler.simulate.objects import Written


class Overbooked:
    """Whoever places pods, the GPUs of a node are given out once."""

    rule = "no node has pods for more GPUs than it has"
    kinds = ("Pod",)

    def wrote(self, written: Written, ground: InvariantContext) -> Iterator[str]:
        if written.after is None:
            return
        node = (written.after.get("spec") or {}).get("nodeName")
        if not node or ((written.before or {}).get("spec") or {}).get("nodeName") == node:
            return
        seen = ground.where.nodes.get(node)
        if seen is None:
            yield f"Pod {written.key[2]} is bound to Node/{node}, which is not there"
        elif (asked := ground.where.gpus_on(node)) > seen.gpus:
            yield f"the pods of Node/{node} ask for {asked} GPUs, and it has {seen.gpus}"
