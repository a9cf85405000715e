"""What is asked of an API server, and how it may fail; the real one is in client.py, which costs more to import."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Unreachable(Exception):
    """There is no answer to be had: why, and what a person can do about it."""

    def __init__(self, sentence: str, remedy: str) -> None:
        super().__init__(sentence, remedy)
        self.sentence, self.remedy = sentence, remedy

    def __str__(self) -> str:
        return f"{self.sentence}: {self.remedy}"


class ApiResponse(msgspec.Struct, frozen=True):
    """An answer, whatever it says."""

    status: int
    body: bytes = b""
    retry_after_seconds: float = 0.0


class ApiRequest(msgspec.Struct, frozen=True):
    """A write."""

    method: str  # POST, PUT, PATCH, DELETE
    path: str
    body: bytes = b""
    content_type: str = JSON
    query: Mapping[str, str] = {}


class Stream(msgspec.Struct, frozen=True):
    """A watch: lines as they come, or the answer that refuses it."""

    answer: ApiResponse
    lines: Iterator[bytes]


class ApiServer(Protocol):
    """One identity's way to one API server; may be used from several threads. Raises Unreachable."""

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        """One answer, whole."""
        ...

    def stream(self, path: str, query: Mapping[str, str], silence_seconds: float) -> AbstractContextManager[Stream]:
        """An answer line by line; Unreachable when nothing comes for that long."""
        ...

    def apart(self) -> "ApiServer":
        """The same identity with connections of its own, which can be closed without harm to others."""
        ...

    def close(self) -> None:
        """Ends what is under way, and refuses what is asked later."""
        ...


class Writer(Protocol):
    """One identity's way to look at single objects and to write; may be used from several threads."""

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        """One answer, whole. Raises Unreachable."""
        ...

    def send(self, request: ApiRequest) -> ApiResponse:
        """One write, sent once. Raises Unreachable, and then it may have taken effect all the same."""
        ...
