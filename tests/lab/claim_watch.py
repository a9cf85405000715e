"""Owner of a watch of all NodeClaims: which of them ever were drifted, however briefly, while it went on."""

import contextlib
import itertools
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import urllib3

from tests.lab.api import Api, Manifest, Refused

# Who asks Karpenter whether a claim is drifted says so with this reason: it is no answer.
ASKED = "AskedByTest"

_MARK = "lab/watched"


class ClaimWatch:
    """A thread that reads the watch: a look now and then could miss what Karpenter took back."""

    def __init__(self, admin: Api) -> None:
        self._admin = admin
        self._drifted: dict[str, str] = {}
        self._marks = itertools.count(1)
        self._seen = threading.Condition()
        self._last_mark = 0
        self._over = False
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.drifted()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over = True
        with contextlib.suppress(IndexError, Refused):  # without claims nothing comes any more, and the thread may wait
            self._mark()
            self._thread.join(10)

    def drifted(self) -> dict[str, str]:
        """All that were drifted until now, with the reason."""
        mark = self._mark()
        # Events come in the order of the writes: once ours is seen, so is all before it.
        with self._seen:
            assert self._seen.wait_for(lambda: self._last_mark >= mark, 60), "the watch of NodeClaims fell silent"
            return dict(self._drifted)

    def _mark(self) -> int:
        mark = next(self._marks)
        first = self._admin.list("nodeclaims")[0]["metadata"]["name"]
        self._admin.merge(self._admin.path("nodeclaims", first), {"metadata": {"annotations": {_MARK: str(mark)}}})
        return mark

    def _read(self) -> None:
        for event in self._events():
            claim = event["object"]
            reason = drift_of(claim)
            with self._seen:
                if reason not in {"", ASKED}:
                    self._drifted[claim["metadata"]["name"]] = reason
                marked = claim["metadata"].get("annotations", {}).get(_MARK, "0")
                self._last_mark = max(self._last_mark, int(marked))
                self._seen.notify_all()
            if self._over:
                return

    def _events(self) -> Iterator[Manifest]:
        while not self._over:
            try:
                yield from self._admin.watch("nodeclaims", timeout_seconds=300)
            except urllib3.exceptions.HTTPError:
                if not self._over:
                    raise


def drift_of(claim: Manifest | None) -> str:
    """Why a NodeClaim is drifted; nothing when it is not."""
    conditions = (claim or {}).get("status", {}).get("conditions", ())
    found = next((each for each in conditions if each["type"] == "Drifted" and each["status"] == "True"), None)
    return str(found["reason"]) if found else ""
