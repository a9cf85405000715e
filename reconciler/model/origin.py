"""Where a value was written, so that every decision can be led back to a line."""

import msgspec


class Origin(msgspec.Struct, frozen=True, gc=False, order=True):
    """Where a value was written."""

    file: str
    line: int
    revision: str = ""
