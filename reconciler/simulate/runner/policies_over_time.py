"""The policies of a play: owner of which revision is in force."""

from collections.abc import Callable

from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.ports import Wished
from reconciler.simulate.runner.play import Revised
from reconciler.simulate.stage import Stage


class PoliciesOverTime:
    """A Policies, and an Actor: each revision comes into force when its time has come."""

    def __init__(self, revisions: tuple[Revised, ...], on_change: Callable[[Desired], None]) -> None:
        self._revisions = revisions
        self._on_change = on_change
        self._wished = Wished(revisions[0].desired)

    @property
    def desired(self) -> Desired:
        """What is wished for now."""
        if self._wished.desired is None:
            raise TypeError("a play has policies from the beginning")
        return self._wished.desired

    def start(self, stage: Stage) -> None:
        for each in self._revisions[1:]:
            stage.engine.at(Instant(stage.now + each.after_ms), "policies change", self._change_to(each.desired))

    def wish(self, cluster_uid: str) -> Wished:
        return self._wished

    def _change_to(self, desired: Desired) -> Callable[[], None]:
        def change() -> None:
            self._wished = Wished(desired)
            self._on_change(desired)

        return change
