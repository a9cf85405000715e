"""How much a source reads before it refuses: whatever lies in a folder or a repository, reading it ends."""

import msgspec

ENTRY_BYTES = 512  # of a line of a listing, on the average


class SourceBounds(msgspec.Struct, frozen=True):
    """What is beyond one of these is a Problem that names it, never a part of what was there."""

    files: int = 2_000  # policies and templates together
    file_bytes: int = 1 << 20
    total_bytes: int = 32 << 20
    depth: int = 16  # folders below the one that was named
    entries: int = 50_000  # names that are looked at, ignored ones included
    deadline_seconds: float = 60.0  # for all that one revision asks of git
    history_seconds: float = 5.0  # for who last changed the lines that one question is about
    disk_bytes: int = 512 << 20  # that a fetched revision may take while git writes it
    memory_bytes: int = 1 << 30  # of each git process, where the kernel can limit it

    @property
    def listing_bytes(self) -> int:
        """Of the listing of a tree: its entries, at their average."""
        return self.entries * ENTRY_BYTES
