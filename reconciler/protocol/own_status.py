"""Whether the status of one of our objects says already what it is to say."""

from typing import Any

from reconciler.model import names
from reconciler.protocol.preconditions import Object


def is_published(found: Object, status: Object) -> bool:
    """All of it stands, beside what the API server fills in; and nothing does that we said before and no longer say."""
    return _contains(found.get("status") or {}, status) and said_before(found) <= status.keys()


def said_before(found: Object) -> set[str]:
    """The fields of its status that we set."""
    entries = found["metadata"].get("managedFields") or ()
    ours = [
        each.get("fieldsV1", {}).get("f:status", {})
        for each in entries
        if each.get("manager") == names.FIELD_MANAGER and each.get("subresource") == "status"
    ]
    return {key.removeprefix("f:") for fields in ours for key in fields if key.startswith("f:")}


def _contains(found: Any, wished: Any) -> bool:
    if isinstance(wished, dict):
        return isinstance(found, dict) and all(_contains(found.get(key), each) for key, each in wished.items())
    if isinstance(wished, list):
        is_list = isinstance(found, list) and len(found) == len(wished)
        return is_list and all(_contains(*each) for each in zip(found, wished, strict=True))
    return bool(found == wished)
