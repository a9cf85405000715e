"""What JSON reports have in common: how a moment is written, and what made them."""

from typing import Annotated

import msgspec

TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z$"
Time = Annotated[str, msgspec.Meta(description="2026-11-18T14:52:00Z", pattern=TIME_PATTERN)]


class Tool(msgspec.Struct, frozen=True):
    """What made it."""

    name: str
    version: str
