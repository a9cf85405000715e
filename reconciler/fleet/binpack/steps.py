"""Owner of the steps that packing took, and of whether there are any left."""


class Steps:
    """A look at up to a thousand offers, nodes or kinds of pod is one."""

    def __init__(self, most: int | None) -> None:
        self.done = 0
        self._most = most

    def take(self, looked_at: int = 1) -> None:
        """One look at so many things."""
        self.done += 1 + looked_at // 1000

    @property
    def are_spent(self) -> bool:
        return self._most is not None and self.done >= self._most
