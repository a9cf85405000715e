"""ChangeApproval: a revision of the policies that may pass a guard, how far, and how long."""

from typing import Annotated

import msgspec

from reconciler.model.fields import Refers, Says, Shaped, Within
from reconciler.model.kinds.change_guard import Ceiling


class ChangeApproval(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Lets every plan of one revision pass a guard, however the fleet moves, as long as it stays within ceilings."""

    suspend: Annotated[bool, Says("Set aside: it approves nothing until this is taken back.")] = False
    guard_name: Annotated[str, Says("The guard that is passed."), Refers("ChangeGuard")]
    revision: Annotated[
        str,
        Says("The revision of the policies, whole: what begins alike is another."),
        Within(1, 253),
        Shaped(r"^[A-Za-z0-9][A-Za-z0-9:._/-]*$", "a commit's whole id, or a revision as plan tells it"),
    ]
    ceilings: Annotated[Ceiling, Says("What it may come to; where one is absent, the guard's own limit stays.")]
    expires: Annotated[
        str,
        Says("When it ends."),
        Within(20, 35),
        Shaped(
            r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[-+][0-9]{2}:[0-9]{2})$",
            "a time, such as 2026-11-02T08:00:00Z",
        ),
    ]
    reason: Annotated[str, Says("Why it was given, for people."), Within(0, 1024)] = ""
