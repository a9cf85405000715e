"""Owner of which pods still wait for capacity, which pools each of them fits, and what the others wait for."""

from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.cluster.pod import Pod
from reconciler.plan.capacity.wait_times import PodWait


class DemandQueue:
    """Pods keep their order. A pod that is served leaves the queue."""

    def __init__(self, pods: Sequence[Pod], fitting: Mapping[str, Sequence[Pod]]) -> None:
        """`fitting`: by the name of a provisioner, the pods that a new node of its pool could hold."""
        self._left = {pod.metadata.uid: pod for pod in pods}
        self._fitting = fitting
        self.served: dict[str, PodWait] = {}  # by uid

    @property
    def left(self) -> list[Pod]:
        return list(self._left.values())

    def fitting(self, provisioner: str) -> list[Pod]:
        """Pods that still wait, and that a new node of the pool could hold."""
        return [pod for pod in self._fitting.get(provisioner, ()) if pod.metadata.uid in self._left]

    def serve(self, waits: PodWait) -> None:
        """Nothing further is done for the pod."""
        uid = waits.pod.metadata.uid
        if self._left.pop(uid, None) is None:
            raise ValueError(f"Pod/{waits.pod.title} is served already")
        self.served[uid] = waits

    def serve_all(self, waits: Iterable[PodWait]) -> None:
        for each in waits:
            self.serve(each)
