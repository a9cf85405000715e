"""A connection to one API server with one identity, configured like kubectl.

The package `kubernetes` reads the kubeconfig, runs its plugins and refreshes tokens. Its models and watches are not
used: they are slow and lose their position. Importing the package takes a quarter of a second, so import this module
late.
"""

import http.client
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Self
from urllib.parse import urlencode

import msgspec
import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import list_kube_config_contexts, load_incluster_config, load_kube_config
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    InsecureRequestWarning,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from reconciler import __version__
from reconciler.kube.api_server import JSON, ApiRequest, ApiResponse, Stream, Unreachable, checked
from reconciler.kube.connections import Connections, HttpRequest, Timeouts
from reconciler.kube.decode import know_kinds
from reconciler.kube.placeholders import know_fields
from reconciler.model.parsers import natural

_USER_AGENT = f"reconciler/{__version__}"
_DEFAULT_FILE = "~/.kube/config"
_CONNECTIONS = 64  # one per watched kind, and some for other requests
_RENEW_SECONDS = 10.0  # minimum time between two reloads of the kubeconfig after a 401
_LOG_IN = "log in again, or check the user of this context (kubectl config view)"

Load = Callable[[], Configuration]


class Client:
    """Owner of a connection pool; thread-safe."""

    def __init__(self, load: Load, timeouts: Timeouts | None = None) -> None:
        self._load = load
        self._timeouts = timeouts or Timeouts()
        self._lock = threading.Lock()  # fetching a token may run a program, which should run only once
        self._configuration = load()
        self._pool = _pool(self._configuration)
        self._connections = Connections(self._pool, self.url)
        self._loaded = time.monotonic()
        self._open: set[urllib3.BaseHTTPResponse] = set()
        self._is_closed = False

    @classmethod
    def at(cls, url: str, authority: Path, token: str, timeouts: Timeouts | None = None) -> Self:
        """A client with an explicit token, without a kubeconfig."""

        def load() -> Configuration:
            configuration = Configuration(host=url, ssl_ca_cert=str(authority))
            configuration.api_key["BearerToken"] = f"Bearer {token}"
            return configuration

        return cls(load, timeouts)

    @property
    def url(self) -> str:
        return str(self._configuration.host)

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        return self._exchange(HttpRequest("GET", _target(path, query or {}), {"Accept": accept}))

    def send(self, request: ApiRequest) -> ApiResponse:
        headers = {"Accept": JSON, "Content-Type": request.content_type}
        target = _target(request.path, request.query)
        return self._exchange(HttpRequest(request.method, target, headers, request.body))

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str], silence_seconds: float) -> Iterator[Stream]:
        with self._stream(_target(path, query), silence_seconds) as response:
            if response.status != 200:
                yield Stream(self._refusal(response), iter(()))
            else:
                yield Stream(ApiResponse(200), self._lines(response))

    def apart(self) -> "Client":
        """A client with the same identity and separate connections."""
        return Client(self._load, self._timeouts)

    def close(self) -> None:
        """Aborts reads on other threads, and refuses later requests."""
        with self._lock:
            self._is_closed = True
            reading = list(self._open)
        for response in reading:
            with suppress(ValueError, RuntimeError, OSError):  # already closed
                response.shutdown()
        self._connections.abort()
        self._pool.clear()

    def _exchange(self, request: HttpRequest) -> ApiResponse:
        response = self._whole(request)
        if response.status == 401 and self._renew():
            response = self._whole(request)
        if response.status == 401:
            raise self._rejected
        return response

    def _whole(self, request: HttpRequest) -> ApiResponse:
        connections, headers = self._identified(request.headers)
        with self._plainly():
            response = connections.exchange(msgspec.structs.replace(request, headers=headers), self._timeouts)
        return self._answer(response.status, response.body, response.headers.get("retry-after", ""))

    @contextmanager
    def _stream(self, target: str, silence_seconds: float) -> Iterator[urllib3.BaseHTTPResponse]:
        response = self._begun(target, silence_seconds)
        try:
            if response.status == 401 and self._renew():
                response.close()
                response = self._begun(target, silence_seconds)
            with self._lock:
                self._refuse_if_closed()
                self._open.add(response)
            if response.status == 401:
                raise self._rejected
            yield response
        finally:
            with self._lock:
                self._open.discard(response)
            response.close()

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Converts network errors to Unreachable."""
        try:
            yield
        except (HTTPError, OSError, http.client.HTTPException) as fault:
            raise self._unreachable(fault) from fault
        except ValueError as fault:
            if not self._is_closed:  # a socket that another thread closed fails like this
                raise
            raise self._unreachable(fault) from fault

    def _begun(self, target: str, silence_seconds: float) -> urllib3.BaseHTTPResponse:
        """The response, of which only the head has been read."""
        _, headers = self._identified({"Accept": JSON})
        timeout = urllib3.Timeout(connect=self._timeouts.connect_seconds, read=silence_seconds)
        ask = partial(self._pool.request, "GET", self.url + target, headers=headers, timeout=timeout)
        with self._plainly():
            return ask(preload_content=False, retries=False, redirect=False)

    def _identified(self, headers: Mapping[str, str]) -> tuple[Connections, Mapping[str, str]]:
        """The headers with those that name the client, and the connections to use."""
        with self._lock:
            self._refuse_if_closed()
            return self._connections, {**headers, "User-Agent": _USER_AGENT, **self._authorization()}

    def _authorization(self) -> dict[str, str]:
        try:
            shown = self._configuration.get_api_key_with_prefix("BearerToken")
        except Exception as fault:  # a plugin is an external program
            raise Unreachable(f"no credentials for {self._title}: {_error_text(fault)}", _LOG_IN) from fault
        return {"Authorization": shown} if shown else {}

    def _renew(self) -> bool:
        """Reloads the kubeconfig: its token may have been replaced, or its plugin may return a new one."""
        with self._lock:
            if time.monotonic() < self._loaded + _RENEW_SECONDS:
                return False
            self._loaded = time.monotonic()
            self._configuration = self._load()
            self._pool = _pool(self._configuration)
            self._connections = Connections(self._pool, self.url)
            return True

    def _refusal(self, response: urllib3.BaseHTTPResponse) -> ApiResponse:
        with self._plainly():
            body = response.read()
        return self._answer(response.status, body, response.headers.get("Retry-After", ""))

    def _answer(self, status: int, body: bytes, retry_after: str) -> ApiResponse:
        if status == 403 and b"system:anonymous" in body:
            raise Unreachable(f"{self._title} treats the request as anonymous (system:anonymous)", _LOG_IN)
        return ApiResponse(status, body, float(natural(retry_after) or 0))

    def _lines(self, response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
        """Complete lines as they arrive; finally an incomplete last line, for the caller to judge."""
        begun: list[bytes] = []
        with self._plainly():
            for piece in response.stream(2**16):
                *ended, rest = piece.split(b"\n")
                for line in ended:
                    yield b"".join((*begun, line))
                    begun.clear()
                if rest:
                    begun.append(rest)
        if begun:
            yield b"".join(begun)

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise Unreachable(f"the connection to {self._title} was closed", "restart the command")

    def _unreachable(self, fault: Exception) -> Unreachable:
        sentence, remedy = _why(fault)
        return Unreachable(f"{self._title} {sentence}", remedy)

    @property
    def _rejected(self) -> Unreachable:
        return Unreachable(f"{self._title} rejected the credentials (401 Unauthorized)", _LOG_IN)

    @property
    def _title(self) -> str:
        return f"the API server at {self.url}"


def connect(context: str | None = None, timeouts: Timeouts | None = None) -> Client:
    """The cluster of the kubeconfig's current or named context; in a pod, the pod's own cluster.

    Must be called before other threads start. Raises Unreachable.
    """
    know_types()
    return Client(partial(_configuration, context), timeouts)


def _configuration(context: str | None) -> Configuration:
    named = os.environ.get("KUBECONFIG") or _DEFAULT_FILE
    configuration = Configuration()
    if any(Path(each).expanduser().exists() for each in named.split(os.pathsep) if each):
        _load(partial(load_kube_config, named, context, configuration), f"the kubeconfig {named} cannot be used")
    elif os.environ.get("KUBERNETES_SERVICE_HOST") and not context:
        _load(partial(load_incluster_config, configuration), "the service account of this pod cannot be used")
    else:
        sentence = f"there is no kubeconfig at {named}, and this process does not run in a pod"
        raise Unreachable(sentence, "set KUBECONFIG, or read a cluster file with --cluster")
    return configuration


def _load(read: Callable[[], None], failing: str) -> None:
    try:
        read()
    except Exception as fault:  # noqa: BLE001 - it is written by hand, and may be wrong in any way
        remedy = "kubectl config get-contexts lists the contexts"
        raise Unreachable(f"{failing}: {_error_text(fault)}", remedy) from None


def _target(path: str, query: Mapping[str, str]) -> str:
    """Raises BadPath: urllib3 would resolve `..` in a path, and so request an unintended path."""
    return f"{checked(path)}?{urlencode(query)}" if query else checked(path)


def _error_text(fault: Exception) -> str:
    """The error without quotes from the kubeconfig, which may contain a token."""
    return str(fault).partition("{")[0].rstrip(" /") or type(fault).__name__


def _pool(configuration: Configuration) -> urllib3.PoolManager:
    configuration.connection_pool_maxsize = _CONNECTIONS
    configuration.socket_options = _socket_options()
    if not configuration.verify_ssl:  # set by the user in the kubeconfig: do not warn at each request
        urllib3.disable_warnings(InsecureRequestWarning)
    return RESTClientObject(configuration).pool_manager


def _socket_options() -> list[tuple[int, int, int]]:
    """TCP keepalive, which keeps a quiet watch open through proxies and detects a dead connection."""
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    wanted = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}  # not every system has all of them
    options += [(socket.IPPROTO_TCP, getattr(socket, name), n) for name, n in wanted.items() if hasattr(socket, name)]
    return options


_CHECK_NETWORK = "check that the API server runs and is reachable"

# The first match explains the error.
_FAULTS: tuple[tuple[type[Exception], str, str], ...] = (
    (NameResolutionError, "cannot be resolved", "check the address of the context, and the network"),
    (ReadTimeoutError, "stopped responding", _CHECK_NETWORK),
    (NewConnectionError, "cannot be reached", _CHECK_NETWORK),
    (ConnectTimeoutError, "did not accept a connection in time", _CHECK_NETWORK),
    (SSLError, "has an untrusted certificate", "check the certificates of the context, and the clocks"),
    (ProxyError, "cannot be reached through the proxy", "check HTTPS_PROXY, NO_PROXY and the context's proxy-url"),
    (Exception, "closed the connection", _CHECK_NETWORK),
)


def _why(fault: Exception) -> tuple[str, str]:
    """The message, with the system's error text if there is one, and the remedy."""
    sentence, remedy = next((text, remedy) for kind, text, remedy in _FAULTS if isinstance(fault, kind))
    cause: BaseException | None = fault
    while cause is not None and not (isinstance(cause, OSError) and cause.strerror):
        cause = cause.__cause__ or cause.__context__
    return (f"{sentence} ({cause.strerror})" if isinstance(cause, OSError) else sentence), remedy


# --- The cluster's display name: the name of the kubeconfig's context.

IN_POD = "of this pod"


def context_name(context: str | None) -> str:
    """The named or current context; in a pod, there is none."""
    if context:
        return context
    try:
        _, current = list_kube_config_contexts()  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 - whether it can be used is told when it is; a name must not stand in the way
        return IN_POD
    return str(current.get("name", IN_POD))


# --- Struct types are resolved before several threads decode them.
#
# msgspec resolves a struct type at first use and releases the GIL meanwhile: another thread that uses the type then
# gets an incomplete type, and the process crashes. Therefore all types are resolved before the first connection, while
# there is one thread. This takes ten milliseconds.


def know_types() -> None:
    """Resolves the types of all imported modules."""
    for each in _structs(msgspec.Struct):
        with suppress(TypeError, NameError):  # not a decodable type
            msgspec.json.Decoder(each)
    know_kinds()
    know_fields()


def _structs(of: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in of.__subclasses__():
        yield each
        yield from _structs(each)
