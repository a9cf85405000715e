"""The fault proxy between a Kubernetes client and the API server. Owner of the listening socket and all threads."""

import contextlib
import select
import socket
import ssl
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from tests.lab.proxy.connection import Connection, Surroundings
from tests.lab.proxy.faults import Fault, Ledger
from tests.lab.proxy.records import Exchange, ExchangeLog, ListRecords
from tests.lab.proxy.wire import StoppingError, Waiter

_STOP_SECONDS = 2.0


class Proxy:
    """Passes everything on to the API server, over IPv4, except where a fault was injected.

    The client's token passes through; a client certificate cannot, as TLS ends here on both sides.
    """

    def __init__(self, *, upstream: str, authority: Path, certificate: Path, key: Path) -> None:
        address = urlsplit(upstream)
        if address.scheme != "https" or address.hostname is None:
            raise ValueError(f"{upstream} is no https address")
        client_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        client_tls.load_cert_chain(certificate, key)
        # Tickets would arrive at the client unasked and look like an answer to whoever polls its socket.
        client_tls.num_tickets = 0
        upstream_tls = ssl.create_default_context(cafile=authority)
        for context in (client_tls, upstream_tls):
            context.set_alpn_protocols(["http/1.1"])
        self._lists = ListRecords()
        self._ledger = Ledger(can_recall=lambda request, old: self._lists.find(request, old) is not None)
        self._exchanges = ExchangeLog()
        self._around = Surroundings(
            upstream=(address.hostname, address.port or 443),
            upstream_tls=upstream_tls,
            client_tls=client_tls,
            ledger=self._ledger,
            lists=self._lists,
            exchanges=self._exchanges,
        )
        self._connections: dict[threading.Thread, Connection] = {}
        self._lock = threading.Lock()
        self._waiter = Waiter()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.setblocking(False)
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self._accepting = threading.Thread(target=self._accept, name="fault proxy", daemon=True)

    def __enter__(self) -> "Proxy":
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Closes every connection, for good, and returns when the last thread has ended."""
        deadline = time.monotonic() + _STOP_SECONDS
        self._waiter.stop()
        self._accepting.join(_STOP_SECONDS)
        self._listener.close()
        self._waiter.close()
        with self._lock:
            connections = dict(self._connections)
            self._connections.clear()
        for connection in connections.values():
            connection.stop()
        for thread in connections:
            thread.join(max(0.0, deadline - time.monotonic()))
        if late := [thread.name for thread in connections if thread.is_alive()]:
            raise RuntimeError(f"{len(late)} threads of the proxy did not end in {_STOP_SECONDS} s")

    def inject(self, fault: Fault) -> Fault:
        """Orders a fault; it is tried after those ordered before it."""
        self._ledger.order(fault)
        return fault

    def clear(self) -> None:
        """Takes back all faults. What is silent is cut, what is delayed goes on at once."""
        self._ledger.clear()
        with self._lock:
            connections = list(self._connections.values())
        for connection in connections:
            connection.wake()

    def wait_for(self, fault: Fault, timeout_seconds: float = 30.0) -> None:
        """Returns when the fault took hold as often as it may, or once if it has no end; else TimeoutError."""
        self._ledger.wait_for(fault, timeout_seconds)

    @property
    def exchanges(self) -> list[Exchange]:
        """The last 50,000 requests in the order they came. Those under way are still changing."""
        return self._exchanges.all()

    @property
    def record_lists(self) -> bool:
        return self._lists.recording

    @record_lists.setter
    def record_lists(self, recording: bool) -> None:
        # To start again is to start afresh: old is what came after this.
        if recording and not self._lists.recording:
            self._lists.forget()
        self._lists.recording = recording

    def _accept(self) -> None:
        with contextlib.suppress(StoppingError):
            while True:
                self._waiter.wait({self._listener.fileno(): select.POLLIN})
                # A client may be gone again before it was served, or wake() may have ended the wait.
                with contextlib.suppress(OSError):
                    accepted, _ = self._listener.accept()
                    with contextlib.closing(accepted):  # does nothing once TLS has taken the socket over
                        self._serve(accepted)

    def _serve(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(accepted, self._around)
        thread = threading.Thread(target=connection.run, name="fault proxy connection", daemon=True)
        with self._lock:
            self._connections = {known: its for known, its in self._connections.items() if known.is_alive()}
            self._connections[thread] = connection
            # Under the lock, as one that is not alive counts as ended.
            thread.start()
