"""How long and how many: the bound that a field declares, or else one for all; no list, map or text goes without.

An API server reckons what a rule may cost from the longest that an object can be, so that one bound left out may cost a
rule elsewhere its place.
"""

from typing import assert_never

from reconciler.model.fields import LONGEST_NAME, Within
from reconciler.policy.shape import Choice, ListOf, MapOf, Measured, Words

MOST_ITEMS = 100
LONGEST_TEXT = 512
LONGEST_MEASURE = 64


def bounded(shape: ListOf | MapOf | Words | Measured) -> Within:
    """Least and most items, entries or characters; most is never absent."""
    match shape:
        case ListOf():
            return _up_to(shape.within, MOST_ITEMS)
        case MapOf(key=Choice(values=values)):
            return _up_to(shape.within, len(values))
        case MapOf():
            return _up_to(shape.within, MOST_ITEMS)
        case Words(refers=None):
            return _up_to(shape.within, LONGEST_TEXT)
        case Words():
            return _up_to(shape.within, LONGEST_NAME)
        case Measured():
            return Within(most=LONGEST_MEASURE)
    assert_never(shape)


def _up_to(within: Within, most: int) -> Within:
    return within if within.most is not None else Within(within.least, most)
