"""What is amiss though the controller works, for /readyz: owner of what the last cycles told of."""

from reconciler.model.plan.cycle_result import CycleResult

_FEW = 3  # that are named
_OFTEN = 3  # cycles in a row after which trouble is told: one cycle may fail for what is over at once


class Notices:
    """A Publisher; read on another thread, which sees one tuple or the next."""

    def __init__(self) -> None:
        self._in_a_row: dict[str, int] = {}
        self.told: tuple[str, ...] = ()

    def publish(self, cycled: CycleResult) -> None:
        found = {f"the cycle came to nothing: {cycled.trouble}"} if cycled.trouble else set()
        for trouble in cycled.plan.troubles if cycled.plan is not None else ():
            place = f" for pool {trouble.pool}" if trouble.pool else ""
            found.add(f"{trouble.planner} could not plan{place}: {trouble.error}")
        self._in_a_row = {each: self._in_a_row.get(each, 0) + 1 for each in found}
        often = sorted(each for each, times in self._in_a_row.items() if times >= _OFTEN)
        self.told = (*_set_aside(cycled), *(f"in {self._in_a_row[each]} cycles in a row {each}" for each in often))

    def forget(self) -> None:
        """Another replica leads from now on."""
        self._in_a_row, self.told = {}, ()


def _set_aside(cycled: CycleResult) -> tuple[str, ...]:
    set_asides = cycled.inputs.observed.set_aside if cycled.inputs is not None else ()
    if not set_asides:
        return ()
    named = ", ".join(each.title for each in set_asides[:_FEW])
    more = f" and {len(set_asides) - _FEW} more" if len(set_asides) > _FEW else ""
    return (f"objects that cannot be understood are set aside, and what depends on them is left alone: {named}{more}",)
