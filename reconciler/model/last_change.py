"""Who last changed a line of a policy, as the repository tells."""

import msgspec

from reconciler.model.origin import Origin


class LastChange(msgspec.Struct, frozen=True):
    """The commit that gave a line its content; or the oldest commit that is known to have the line, where it was looked
    for no further: the clone is shallow, the history is very long, or the commits cannot be read."""

    origin: Origin
    commit: str = ""
    author: str = ""
    date: str = ""  # YYYY-MM-DD, UTC
    subject: str = ""
    unknown_before: str = ""
