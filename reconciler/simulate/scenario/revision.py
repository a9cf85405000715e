"""A Revision: the policies from some moment on."""

from typing import Annotated

import msgspec

from reconciler.model.fields import KeyPattern, Says, Within
from reconciler.model.quantity import Duration

_FILE = KeyPattern(r"^[A-Za-z0-9_][A-Za-z0-9_./-]*\.(ya?ml|json|j2)$", "a file such as base/a100.yaml")

MOST_REVISION = 64  # letters of a name


class ScenarioRevision(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The policies from some moment on: a folder, or files written out here."""

    at: Annotated[Duration, Says("When they are merged.")] = Duration(0)
    revision: Annotated[str, Says("What the revision is called in reports."), Within(most=MOST_REVISION)] = ""
    folder: Annotated[str, Says("Where they are, from the folder of the scenario."), Within(1, 1024)] = ""
    files: Annotated[
        dict[str, Annotated[str, Within(most=200_000)]], Says("What each file says, where there is no folder."), _FILE
    ] = msgspec.field(default_factory=dict)
