"""Where a value was written, so that every decision can be led back to a line."""

import msgspec


class Origin(msgspec.Struct, frozen=True, gc=False, order=True):
    """Where a value was written; a line of 0 means the file, or the object, as a whole."""

    file: str
    line: int
    revision: str = ""

    @property
    def place(self) -> str:
        """file:line, or the file where lines say nothing."""
        return f"{self.file}:{self.line}" if self.line > 0 else self.file
