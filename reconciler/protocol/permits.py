"""Signed permits: what an agent returns to prove its last permit to a new controller.

A permit is a JSON text and its HMAC. All replicas know the keys, from one Secret. The newest key signs; older keys are
accepted until no permit of theirs is valid any more.
"""

import binascii
import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.pressure import Amounts

VALID_MS = 24 * 3_600_000
ROTATION_MS = 7 * 86_400_000  # longer than a permit is valid: one older key suffices
KEY_BYTES = 32
_MOST_KEYS = 2
_FIELD = "keys.json"  # of the Secret
_LONGEST = 4_096  # characters


class Permit(msgspec.Struct, frozen=True, rename="camel"):
    """What the agent of a pod may use on a node."""

    uid: str
    node: str
    resources: Amounts
    epoch: int  # of the leadership that granted it
    expires: Instant


class PermitKeys(msgspec.Struct, frozen=True):
    """The keys, newest first; none: permits are not signed."""

    keys: tuple[bytes, ...] = ()

    def sign(self, permit: Permit) -> str:
        """The token of a permit; empty without a key."""
        if not self.keys:
            return ""
        text = msgspec.json.encode(permit, order="deterministic")
        return f"{_text_of(text)}.{_text_of(_digest(self.keys[0], text))}"

    def read(self, token: str, uid: str, node: str, now: Instant) -> Permit | None:
        """The permit of this pod on this node, if one of the keys signed it and it has not expired."""
        if len(token) > _LONGEST:
            return None
        body, _, signature = token.partition(".")
        try:
            text, digest = _bytes_of(body), _bytes_of(signature)
        except (binascii.Error, ValueError):
            return None
        if not any(hmac.compare_digest(_digest(key, text), digest) for key in self.keys):
            return None
        try:
            permit = msgspec.json.decode(text, type=Permit)
        except msgspec.MsgspecError:  # of another version
            return None
        return permit if (permit.uid, permit.node) == (uid, node) and now < permit.expires else None


# --- The keys as stored in a Secret.


class StoredKey(msgspec.Struct, frozen=True):
    """A key, and when it was made."""

    key: bytes
    made: Instant


StoredKeys = tuple[StoredKey, ...]  # newest first


def read_keys(content: Mapping[str, bytes]) -> StoredKeys:
    """The keys of the Secret. Content that cannot be read has no keys, and short keys are ignored."""
    try:
        found = msgspec.json.decode(content.get(_FIELD, b"[]"), type=StoredKeys)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()
    return tuple(each for each in found if len(each.key) >= KEY_BYTES)[:_MOST_KEYS]


def written_keys(keys: Sequence[StoredKey]) -> dict[str, bytes]:
    """The content of the Secret."""
    return {_FIELD: msgspec.json.encode(keys)}


def is_rotation_due(keys: StoredKeys, now: Instant) -> bool:
    """Whether a new key is due. A key from the future was made by a wrong clock."""
    return not keys or not 0 <= now - keys[0].made + ROTATION_MS < 2 * ROTATION_MS


def rotated(keys: StoredKeys, fresh: bytes, now: Instant) -> StoredKeys:
    """The keys with a new one, which signs from now on."""
    return (StoredKey(fresh, now), *keys)[:_MOST_KEYS]


def permit_keys(keys: StoredKeys) -> PermitKeys:
    """What signs and reads permits."""
    return PermitKeys(tuple(each.key for each in keys))


def _digest(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, text, hashlib.sha256).digest()


def _text_of(octets: bytes) -> str:
    return urlsafe_b64encode(octets).decode("ascii")


def _bytes_of(text: str) -> bytes:
    return urlsafe_b64decode(text.encode("ascii"))
