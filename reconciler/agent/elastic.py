"""The reference agent of an elastic pod: asks the controller for what the pod needs, and keeps to its permits.

The controller resizes the pod. While the controller is away for longer than AWAY_SECONDS, the agent resizes its pod
itself, if it may, and never above its last permit. One thread; the loop ends when its stop is set.
"""

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from reconciler.agent.negotiation import Negotiation
from reconciler.agent.sizing import Usage
from reconciler.model.plan.pressure import Amounts
from reconciler.protocol.asks import AskAnswer

AWAY_SECONDS = 60.0
TIMEOUT_SECONDS = 5.0
_LARGEST_ANSWER = 64 * 2**10


class Controller(NamedTuple):
    """Where the controller answers asks, and who the agent is."""

    host: str
    port: int
    authority: Path  # of its certificate, in PEM
    token: Path  # of the agent's ServiceAccount; read for each ask, since the kubelet renews the file


class _Refused(msgspec.Struct, rename="camel"):
    error: str = ""
    compute_unit: dict[str, int] | None = None


class ElasticAgent:
    """Asks again and again. `resize`: gives the pod other amounts; None if the agent may not."""

    def __init__(
        self,
        controller: Controller,
        negotiation: Negotiation,
        usage: Callable[[], Usage],
        tell: Callable[[str], None],
        resize: Callable[[Amounts], None] | None = None,
    ) -> None:
        self._controller, self._negotiation, self._usage = controller, negotiation, usage
        self._tell, self._resize = tell, resize
        self._heard = time.monotonic()
        self._last_words = ""

    def run(self, stop: threading.Event, interval_seconds: float) -> None:
        """Until `stop` is set."""
        while not stop.is_set():
            self.once()
            stop.wait(interval_seconds)

    def once(self) -> None:
        """One ask; without an answer for long, one decision of the agent itself."""
        try:
            usage = self._usage()
        except (OSError, ValueError) as error:
            self._say(f"the use of the pod can't be read: {error}")
            return
        try:
            status, body = self._send(msgspec.json.encode(self._negotiation.ask(usage)))
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._say(f"the controller does not answer: {error}")
            self._decide_alone(usage)
            return
        self._heed(status, body, usage)

    def _heed(self, status: int, body: bytes, usage: Usage) -> None:
        try:
            if status == http.HTTPStatus.OK:
                self._negotiation.take(msgspec.json.decode(body, type=AskAnswer))
                self._heard = time.monotonic()
                self._say(f"permitted: {json.dumps(dict(self._negotiation.permit), sort_keys=True)}")
                return
            refused = msgspec.json.decode(body, type=_Refused)
        except msgspec.MsgspecError as error:
            self._say(f"the answer can't be read: {error}")
            return
        self._say(f"refused ({status}): {refused.error}")
        if refused.compute_unit is not None:
            self._negotiation.learn_unit(refused.compute_unit)
        if status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
            self._decide_alone(usage)

    def _decide_alone(self, usage: Usage) -> None:
        if self._resize is None or not self._negotiation.permit or time.monotonic() - self._heard < AWAY_SECONDS:
            return
        try:
            self._resize(self._negotiation.decide(usage))
        except (OSError, http.client.HTTPException) as error:
            self._say(f"the pod was not resized: {error}")

    def _send(self, body: bytes) -> tuple[int, bytes]:
        context = ssl.create_default_context(cafile=str(self._controller.authority))
        connection = http.client.HTTPSConnection(
            self._controller.host, self._controller.port, timeout=TIMEOUT_SECONDS, context=context
        )
        try:
            token = self._controller.token.read_text().strip()
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            connection.request("POST", "/ask", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read(_LARGEST_ANSWER)
        finally:
            connection.close()

    def _say(self, words: str) -> None:
        """The same words once."""
        if words != self._last_words:
            self._last_words = words
            self._tell(words)
