"""One identity's connection to one API server, as kubectl would make it.

The package `kubernetes` reads the kubeconfig, runs its plugins and keeps tokens fresh; its models and its watch are not
used, since they are slow and lose their place. It takes a quarter of a second to import: import this module late.
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
from reconciler.kube.decode import know_kinds
from reconciler.kube.placeholders import know_fields
from reconciler.model.parsers import natural

__all__ = ["Client", "Timeouts", "Unreachable", "connect"]

_DEFAULT_FILE = "~/.kube/config"
_CONNECTIONS = 64  # one a watched kind, and some for what else is asked
_RENEW_SECONDS = 10.0  # between two readings of the kubeconfig because of a 401
_LOG_IN = "log in again, or look at the user of this context (kubectl config view)"

Load = Callable[[], Configuration]


class Timeouts(msgspec.Struct, frozen=True):
    """How long is waited for an API server."""

    connect_seconds: float = 5.0
    answer_seconds: float = 30.0


class _HttpRequest(msgspec.Struct, frozen=True):
    """One request, and how long may be silence."""

    method: str
    url: str
    accept: str
    silence_seconds: float
    body: bytes | None = None
    content_type: str = JSON


class Client:
    """Owner of a pool of connections; may be used from several threads."""

    def __init__(self, load: Load, timeouts: Timeouts | None = None) -> None:
        self._load = load
        self._timeouts = timeouts or Timeouts()
        self._lock = threading.Lock()  # a token may be fetched by running a program, and once is enough
        self._configuration = load()
        self._pool = _pool(self._configuration)
        self._loaded = time.monotonic()
        self._open: set[urllib3.BaseHTTPResponse] = set()
        self._is_closed = False

    @classmethod
    def at(cls, url: str, authority: Path, token: str, timeouts: Timeouts | None = None) -> Self:
        """With a token that is at hand, and no kubeconfig."""

        def load() -> Configuration:
            configuration = Configuration(host=url, ssl_ca_cert=str(authority))
            configuration.api_key["BearerToken"] = f"Bearer {token}"
            return configuration

        return cls(load, timeouts)

    @property
    def url(self) -> str:
        return str(self._configuration.host)

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        """One answer, whole. Raises Unreachable."""
        request = _HttpRequest("GET", _url(path, query or {}), accept, self._timeouts.answer_seconds)
        with self._stream(request) as response:
            return self._whole(response)

    def send(self, request: ApiRequest) -> ApiResponse:
        """One write, sent once. Raises Unreachable, and then it may have taken effect all the same."""
        url = _url(request.path, request.query)
        http_request = _HttpRequest(
            request.method, url, JSON, self._timeouts.answer_seconds, request.body, request.content_type
        )
        with self._stream(http_request) as response:
            return self._whole(response)

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str], silence_seconds: float) -> Iterator[Stream]:
        """An answer line by line. Raises Unreachable, also when nothing comes for that long."""
        with self._stream(_HttpRequest("GET", _url(path, query), JSON, silence_seconds)) as response:
            if response.status != 200:
                yield Stream(self._whole(response), iter(()))
            else:
                yield Stream(ApiResponse(200), self._lines(response))

    def apart(self) -> "Client":
        """The same identity with connections of its own."""
        return Client(self._load, self._timeouts)

    def close(self) -> None:
        """Ends what is being read on other threads, and refuses what is asked later."""
        with self._lock:
            self._is_closed = True
            reading = list(self._open)
        for response in reading:
            with suppress(ValueError, RuntimeError, OSError):  # it came to its end meanwhile
                response.shutdown()
        self._pool.clear()

    @contextmanager
    def _stream(self, request: _HttpRequest) -> Iterator[urllib3.BaseHTTPResponse]:
        response = self._send(request)
        try:
            if response.status == 401 and self._renew():
                response.close()
                response = self._send(request)
            with self._lock:
                self._refuse_if_closed()
                self._open.add(response)
            if response.status == 401:
                raise Unreachable(f"{self._title} does not know us (401 Unauthorized)", _LOG_IN)
            yield response
        finally:
            with self._lock:
                self._open.discard(response)
            response.close()

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Whatever the network does is told in a sentence."""
        try:
            yield
        except (HTTPError, OSError, http.client.HTTPException) as fault:
            raise self._unreachable(fault) from fault
        except ValueError as fault:
            if not self._is_closed:  # a socket that another thread closes says it like this
                raise
            raise self._unreachable(fault) from fault

    def _send(self, request: _HttpRequest) -> urllib3.BaseHTTPResponse:
        with self._lock:
            self._refuse_if_closed()
            pool, host = self._pool, self.url
            headers = {"Accept": request.accept, "User-Agent": f"reconciler/{__version__}", **self._authorization()}
        timeout = urllib3.Timeout(connect=self._timeouts.connect_seconds, read=request.silence_seconds)
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        ask = partial(
            pool.request, request.method, host + request.url, body=request.body, headers=headers, timeout=timeout
        )
        with self._plainly():
            return ask(preload_content=False, retries=False, redirect=False)

    def _authorization(self) -> dict[str, str]:
        try:
            shown = self._configuration.get_api_key_with_prefix("BearerToken")
        except Exception as fault:  # a plugin is a program of somebody else's
            raise Unreachable(f"no credentials for {self._title}: {_error_text(fault)}", _LOG_IN) from fault
        return {"Authorization": shown} if shown else {}

    def _renew(self) -> bool:
        """Reads the kubeconfig again: its token may have been replaced, or its plugin may give another."""
        with self._lock:
            if time.monotonic() < self._loaded + _RENEW_SECONDS:
                return False
            self._loaded = time.monotonic()
            self._configuration = self._load()
            self._pool = _pool(self._configuration)
            return True

    def _whole(self, response: urllib3.BaseHTTPResponse) -> ApiResponse:
        with self._plainly():
            body = response.read()
        if response.status == 403 and b"system:anonymous" in body:
            raise Unreachable(f"{self._title} takes us for nobody (system:anonymous)", _LOG_IN)
        wait = response.headers.get("Retry-After", "")
        return ApiResponse(response.status, body, float(natural(wait) or 0))

    def _lines(self, response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
        """Whole lines as they come; at the end also what is left of one, for its reader to judge."""
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
            raise Unreachable(f"the connection to {self._title} has been closed", "start again")

    def _unreachable(self, fault: Exception) -> Unreachable:
        sentence, remedy = _why(fault)
        return Unreachable(f"{self._title} {sentence}", remedy)

    @property
    def _title(self) -> str:
        return f"the API server at {self.url}"


def connect(context: str | None = None, timeouts: Timeouts | None = None) -> Client:
    """The cluster of the kubeconfig, by its current context unless another is named; in a pod, its own cluster. Comes
    before all threads. Raises Unreachable."""
    know_types()
    return Client(partial(_configuration, context), timeouts)


def _configuration(context: str | None) -> Configuration:
    named = os.environ.get("KUBECONFIG") or _DEFAULT_FILE
    configuration = Configuration()
    if any(Path(each).expanduser().exists() for each in named.split(os.pathsep) if each):
        _load(partial(load_kube_config, named, context, configuration), f"the kubeconfig {named} can't be used")
    elif os.environ.get("KUBERNETES_SERVICE_HOST") and not context:
        _load(partial(load_incluster_config, configuration), "the service account of this pod can't be used")
    else:
        sentence = f"there is no kubeconfig at {named}, and this is no pod"
        raise Unreachable(sentence, "name one in KUBECONFIG, or give a file of the cluster with --cluster")
    return configuration


def _load(read: Callable[[], None], failing: str) -> None:
    try:
        read()
    except Exception as fault:  # noqa: BLE001 - it is written by hand, and may be wrong in any way
        remedy = "kubectl config get-contexts says what there is"
        raise Unreachable(f"{failing}: {_error_text(fault)}", remedy) from None


def _url(path: str, query: Mapping[str, str]) -> str:
    """Raises BadPath: urllib3 would follow `..` in a path, and so reach what nobody meant."""
    return f"{checked(path)}?{urlencode(query)}" if query else checked(path)


def _error_text(fault: Exception) -> str:
    """Without what the package quotes of the file, which may be a token."""
    return str(fault).partition("{")[0].rstrip(" /") or type(fault).__name__


def _pool(configuration: Configuration) -> urllib3.PoolManager:
    configuration.connection_pool_maxsize = _CONNECTIONS
    configuration.socket_options = _socket_options()
    if not configuration.verify_ssl:  # somebody wrote so into the kubeconfig: not to be told at each request
        urllib3.disable_warnings(InsecureRequestWarning)
    return RESTClientObject(configuration).pool_manager


def _socket_options() -> list[tuple[int, int, int]]:
    """TCP's own keepalive, so that what lies between keeps a quiet watch, and a dead one is found."""
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    wanted = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}  # not every system has each
    options += [(socket.IPPROTO_TCP, getattr(socket, name), n) for name, n in wanted.items() if hasattr(socket, name)]
    return options


_CHECK_NETWORK = "check that it runs, and that this machine can reach it"

# The first that fits says what is wrong.
_FAULTS: tuple[tuple[type[Exception], str, str], ...] = (
    (NameResolutionError, "can't be found: its name is not known", "check the address of the context, and the network"),
    (ReadTimeoutError, "has fallen silent", _CHECK_NETWORK),
    (NewConnectionError, "can't be reached", _CHECK_NETWORK),
    (ConnectTimeoutError, "does not take a connection in time", _CHECK_NETWORK),
    (SSLError, "can't be trusted", "check the certificates of the context, and the clocks"),
    (ProxyError, "can't be reached through the proxy", "check HTTPS_PROXY, NO_PROXY and the context's proxy-url"),
    (Exception, "broke the connection off", _CHECK_NETWORK),
)


def _why(fault: Exception) -> tuple[str, str]:
    """The sentence, with what the system says where it says something, and the remedy."""
    sentence, remedy = next((text, remedy) for kind, text, remedy in _FAULTS if isinstance(fault, kind))
    cause: BaseException | None = fault
    while cause is not None and not (isinstance(cause, OSError) and cause.strerror):
        cause = cause.__cause__ or cause.__context__
    return (f"{sentence} ({cause.strerror})" if isinstance(cause, OSError) else sentence), remedy


# --- What people call the cluster: the name of the kubeconfig's context.

IN_POD = "of this pod"


def context_name(context: str | None) -> str:
    """The one that was named, or the current one; in a pod there is none."""
    if context:
        return context
    try:
        _, current = list_kube_config_contexts()  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 - whether it can be used is told when it is; a name must not stand in the way
        return IN_POD
    return str(current.get("name", IN_POD))


# --- What structs consist of, found out before several threads read them.
#
# msgspec finds out what a type consists of when that is read for the first time, and lets other threads go on
# meanwhile: one that reads the same type then is given half of it, and the whole process dies. So who connects to a
# cluster finds out about all types, in the one thread that there is by then. It takes ten milliseconds.


def know_types() -> None:
    """Of all modules that have been imported."""
    for each in _structs(msgspec.Struct):
        with suppress(TypeError, NameError):  # it was not made to be read
            msgspec.json.Decoder(each)
    know_kinds()
    know_fields()


def _structs(of: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in of.__subclasses__():
        yield each
        yield from _structs(each)
