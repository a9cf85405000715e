"""What keeps a pod off a node: typed facts of one case, which reconciler/fleet/obstacles.py declares."""

from typing import Any, ClassVar


class Obstacle:
    """Any of them. Which class a stored one has, plan/reason_catalog.py tells a decoder."""

    __slots__ = ()

    template: ClassVar[str] = ""  # of its words; plan/obstacle_words.py fills it in


def order_of(obstacle: Obstacle) -> tuple[Any, ...]:
    """By case and facts: the same whichever was found first."""
    template = obstacle.template
    return "" if template.startswith("{") else template, template, repr(obstacle)
