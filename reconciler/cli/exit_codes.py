"""What the process says as it ends; scripts and pipelines rely on these numbers."""

from enum import IntEnum


class ExitCode(IntEnum):
    """One meaning each, the same for every command."""

    FINE = 0
    FAILED = 1
    CHANGES_EXIST = 2  # only where --detailed-exitcode asks for it
    INVALID_POLICY = 3
    BLOCKED = 4  # a blocked hold: a guard, a missing approval, a field or an object that is someone else's
    PARTLY = 5  # some of it was done, and running it again finishes it
    WRONG_USAGE = 64
    INTERRUPTED = 130
