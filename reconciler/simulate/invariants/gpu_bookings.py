"""The imagined cluster itself is sound: no GPU is given to two pods."""

from collections.abc import Iterator

from reconciler.simulate.invariants.invariant import InvariantContext
from reconciler.simulate.objects import ObjectWrite


class Overbooked:
    """Whoever places pods, the GPUs of a node are given out once."""

    rule = "no node has pods for more GPUs than it has"
    kinds = ("Pod",)

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if written.after is None:
            return
        node = (written.after.get("spec") or {}).get("nodeName")
        if not node or ((written.before or {}).get("spec") or {}).get("nodeName") == node:
            return
        observed = context.where.nodes.get(node)
        if observed is None:
            yield f"Pod {written.key[2]} is bound to Node/{node}, which is not there"
        elif (requested := context.where.gpus_on(node)) > observed.gpus:
            yield f"the pods of Node/{node} ask for {requested} GPUs, and it has {observed.gpus}"
