"""Warnings for /readyz while the controller works."""

from reconciler.model.plan.inputs import CycleResult

_FEW = 3  # number of names listed
_OFTEN = 3  # consecutive cycles before trouble is reported: a single failure may be temporary


class Notices:
    """A Publisher. Another thread reads `told`, which is replaced as a whole."""

    def __init__(self) -> None:
        self._in_a_row: dict[str, int] = {}
        self.told: tuple[str, ...] = ()

    def publish(self, cycled: CycleResult) -> None:
        found = {f"the cycle failed: {cycled.trouble}"} if cycled.trouble else set()
        for trouble in cycled.plan.troubles if cycled.plan is not None else ():
            place = f" for pool {trouble.pool}" if trouble.pool else ""
            found.add(f"{trouble.planner} could not plan{place}: {trouble.error}")
        self._in_a_row = {each: self._in_a_row.get(each, 0) + 1 for each in found}
        often = sorted(each for each, times in self._in_a_row.items() if times >= _OFTEN)
        self.told = (*_set_aside(cycled), *(f"in {self._in_a_row[each]} consecutive cycles, {each}" for each in often))

    def forget(self) -> None:
        """Clears the warnings when another replica leads."""
        self._in_a_row, self.told = {}, ()


def _set_aside(cycled: CycleResult) -> tuple[str, ...]:
    set_asides = cycled.inputs.observed.set_aside if cycled.inputs is not None else ()
    if not set_asides:
        return ()
    named = ", ".join(each.title for each in set_asides[:_FEW])
    more = f" and {len(set_asides) - _FEW} more" if len(set_asides) > _FEW else ""
    return (f"objects that cannot be parsed are ignored, and objects that depend on them do not change: {named}{more}",)
