"""A value that could not be read, and rules that are checked as far as the values that they use could be read.

One run reports a wrong form of one field together with violated rules of the other fields of the object. A spec with
such fields is only checked, and never planned with.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Never, TypeVar

T = TypeVar("T")


class UsesUnreadable(Exception):
    """A rule uses a value that could not be read."""


class _Unreadable:
    """Any use of the value raises; only `is` and `isinstance` do not."""

    def _refuse(self, *_: Any) -> Never:
        raise UsesUnreadable

    __getattr__ = __getitem__ = __iter__ = __len__ = __contains__ = __bool__ = __format__ = __str__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __int__ = __index__ = _refuse


# The problem of the value is already reported. The value is not absent: a rule about absence does not apply.
UNREADABLE: Any = _Unreadable()


def as_far_as_readable(found: Iterable[T]) -> Iterator[T]:
    """The items up to the first use of an unreadable value."""
    try:
        yield from found
    except UsesUnreadable:
        return


def checked(rules: Iterable[Iterable[T]]) -> Iterator[T]:
    """The problems of all rules. A rule that uses an unreadable value does not stop the other rules."""
    for rule in as_far_as_readable(rules):
        yield from as_far_as_readable(rule)
