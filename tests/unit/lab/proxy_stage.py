"""What the tests of the proxy play on: a small API server that says what it saw, and clients of the proxy."""

import contextlib
import datetime
import http.client
import ipaddress
import json
import queue
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.lab.proxy.door import Proxy


@dataclass(frozen=True)
class Papers:
    """An authority's certificate, and a certificate of this host signed by it."""

    authority: Path
    certificate: Path
    key: Path

    @property
    def server_tls(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context

    @property
    def client_tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)


def write_papers(folder: Path) -> Papers:
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of the test")])
    host_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "host of the test")])
    hosts = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))])

    def sign(subject: x509.Name, public_key: ec.EllipticCurvePublicKey, extension: x509.ExtensionType) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(authority_name, subject, public_key, x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(hours=1))
        builder = builder.not_valid_after(now + datetime.timedelta(hours=1))
        signed = builder.add_extension(extension, critical=False).sign(authority_key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)

    papers = Papers(folder / "ca.crt", folder / "server.crt", folder / "server.key")
    papers.authority.write_bytes(
        sign(authority_name, authority_key.public_key(), x509.BasicConstraints(ca=True, path_length=None))
    )
    papers.certificate.write_bytes(sign(host_name, key.public_key(), hosts))
    papers.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return papers


class UpstreamWatch:
    """The server's end of one watch."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.ear, self._mouth = socket.socketpair()

    def say(self, *events: bytes) -> None:
        self._mouth.sendall(b"".join(events))

    def finish(self) -> None:
        self._mouth.close()

    def close(self) -> None:
        self.ear.close()
        self._mouth.close()


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    headers: Message
    body: bytes


class Upstream(ThreadingHTTPServer):
    """Answers every request with the number it has, every watch with a stream the test speaks on."""

    request_queue_size = 128

    def __init__(self, tls: ssl.SSLContext) -> None:
        self.seen: list[Seen] = []
        self.arrived: queue.Queue[Seen] = queue.Queue()
        self.hung_up: queue.Queue[bool] = queue.Queue()
        self.watches: queue.Queue[UpstreamWatch] = queue.Queue()
        self.all_watches: list[UpstreamWatch] = []
        self.connections = 0
        self._tls = tls
        super().__init__(("127.0.0.1", 0), _Reply)

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        accepted, address = super().get_request()
        self.connections += 1
        return self._tls.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are what these tests are about."""

    @contextlib.contextmanager
    def serving(self) -> Iterator["Upstream"]:
        thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            for watch in self.all_watches:
                watch.close()
            self.shutdown()
            thread.join()
            self.server_close()


class _Reply(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Upstream

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Says nothing."""

    def _reply(self) -> None:
        seen = Seen(self.command, self.path, self.headers, self._read_body())
        self.server.seen.append(seen)
        number = len(self.server.seen)
        self.server.arrived.put(seen)
        if "watch=true" in self.path:
            return self._watch()
        if self.path == "/slow":
            hung_up, _, _ = select.select([self.connection], [], [], 0.1)
            self.server.hung_up.put(bool(hung_up))
        body = b"x" * 3_000_000 if self.path == "/large" else json.dumps({"number": number}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if self.path == "/chunked":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"3\r\n%b\r\n%x;a=b\r\n%b\r\n0\r\nEnd: yes\r\n\r\n" % (body[:3], len(body) - 3, body[3:]))
            return None
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        return None

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _reply  # noqa: N815 - the names are the library's

    def _read_body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def _watch(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        watch = UpstreamWatch()
        self.server.all_watches.append(watch)
        self.server.watches.put(watch)
        while True:
            ready, _, _ = select.select([self.connection, watch.ear], [], [])
            if self.connection in ready:
                self.close_connection = True
                watch.ended.set()
                return
            said = watch.ear.recv(65536)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(said), said))
            if not said:
                return


class Stage:
    """A proxy before an API server, and clients that trust it."""

    def __init__(self, upstream: Upstream, proxy: Proxy, papers: Papers) -> None:
        self.upstream = upstream
        self.proxy = proxy
        self._tls = papers.client_tls
        self._clients = contextlib.ExitStack()

    def connect(self) -> http.client.HTTPSConnection:
        port = urlsplit(self.proxy.url).port
        client = http.client.HTTPSConnection("127.0.0.1", port, context=self._tls, timeout=20)
        self._clients.callback(client.close)
        return client

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        client = self.connect()
        client.request(method, path, body)
        response = client.getresponse()
        return response.status, response.read()

    def watch(self) -> tuple[http.client.HTTPResponse, UpstreamWatch]:
        client = self.connect()
        client.request("GET", "/api/v1/nodes?watch=true")
        response = client.getresponse()
        self._clients.callback(response.close)
        return response, self.upstream.watches.get(timeout=20)

    def close(self) -> None:
        self._clients.close()


@contextlib.contextmanager
def staged(papers: Papers) -> Iterator[Stage]:
    with Upstream(papers.server_tls).serving() as upstream:
        address = f"https://127.0.0.1:{upstream.server_port}"
        with Proxy(
            upstream=address, authority=papers.authority, certificate=papers.certificate, key=papers.key
        ) as proxy:
            stage = Stage(upstream, proxy, papers)
            try:
                yield stage
            finally:
                stage.close()
