"""How fast pods are asked to leave: no workload's next before the last was followed, and nobody into another's way."""

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.plan.drain.eviction.concurrent import SettingOut
from reconciler.plan.drain.eviction.successors import Successors


class EvictionPace(msgspec.Struct, frozen=True):
    """Of one plan."""

    successors: Successors
    setting_out: SettingOut

    def note_eviction(self, pod: Pod) -> None:
        """It is asked to leave."""
        self.successors.note_eviction(pod)
        self.setting_out.take(pod)
