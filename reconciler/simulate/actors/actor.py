"""What an actor is: one who writes to the imagined cluster when something changed, or when it is time."""

from typing import Protocol

from reconciler.simulate.stage import Stage


class Actor(Protocol):
    """Deterministic: it goes by the stage and the engine's chance alone, and walks nothing in the order of a hash."""

    def start(self, stage: Stage) -> None:
        """Called once, when the world stands; from then on it acts by events of the engine."""
        ...
