"""Remotes over SSH and HTTPS: fetched once, within time and disk, and their credentials said to nobody else."""

import base64
import http.server
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reconciler.model.bundle import Bundle
from reconciler.sources.git import Access, GitPlace, read_revision
from reconciler.sources.repository.process import Credentials
from reconciler.sources.walk import SourceBounds
from tests.unit.lab.proxy_stage import write_papers
from tests.unit.sources.stage import GIT, POLICY, SSH, Repository, codes, put_first, sentences, texts

TOKEN = "s3cret-t0ken"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "policies.git")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def far(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The repository as if it were on another host; each call is written down."""
    put_first(monkeypatch, tmp_path / "bin", "ssh", SSH.replace("exec", f'echo "$asked" >>{tmp_path}/calls\nexec'))
    return f"git@example.com:{repository.folder}"


def read(address: str, cache: Path, revision: str = "main", bounds: SourceBounds | None = None) -> Bundle:
    access = Access(cache, Credentials(TOKEN))
    return read_revision(GitPlace(address, revision, "policies"), bounds or SourceBounds(deadline_seconds=60), access)


def test_branches_tags_and_commits_are_read(repository: Repository, far: str, cache: Path) -> None:
    first, second = repository.commits([{"policies/a.yaml": b"1"}, {"policies/a.yaml": b"2"}])
    repository.git("tag", "--annotate", "--message", "", "v1", first)
    wanted = {"main": second, "refs/heads/main": second, "HEAD": second, "v1": first, first: first, second: second}
    for revision, commit in wanted.items():
        bundle = read(far, cache, revision)
        assert (bundle.revision, bundle.problems) == (commit, ())
    assert texts(read(far, cache, first)) == {"policies/a.yaml": b"1"}
    assert codes(read(far, cache, "none")) == ["RC512"]
    assert codes(read(far, cache, "1" * 40)) == ["RC515"]


def test_repositories_with_longer_ids_are_read(tmp_path: Path, far: str, cache: Path) -> None:
    repository = Repository(tmp_path / "longer.git", ids="sha256")
    commit = repository.commit({"policies/a.yaml": POLICY})
    assert len(commit) == 64
    for place in (str(repository.folder), f"git@example.com:{repository.folder}"):
        for revision in ("main", commit):
            bundle = read(place, cache / revision, revision)
            assert bundle.revision == commit, sentences(bundle)
            assert texts(bundle) == {"policies/a.yaml": POLICY}


def test_a_commit_is_fetched_once_and_few_are_kept(
    repository: Repository, far: str, cache: Path, tmp_path: Path
) -> None:
    commit = ""
    for number in range(6):
        commit = repository.commit({"policies/a.yaml": b"%d" % number})
        assert texts(read(far, cache)) == {"policies/a.yaml": b"%d" % number}
    calls = len((tmp_path / "calls").read_text().splitlines())
    read(far, cache)
    assert len((tmp_path / "calls").read_text().splitlines()) == calls + 1
    read(far, cache, commit)
    assert len((tmp_path / "calls").read_text().splitlines()) == calls + 1
    assert len(list(cache.glob("*/*/HEAD"))) == 4


def test_what_is_too_large_is_not_sent(repository: Repository, far: str, cache: Path) -> None:
    repository.commit({"policies/a.yaml": POLICY, "policies/big.yaml": os.urandom(1 << 21)})
    bundle = read(far, cache)
    assert codes(bundle) == ["RC504"]
    assert "policies/big.yaml: has more than the limit of 1,048,576 bytes" in sentences(bundle)
    assert texts(bundle) == {"policies/a.yaml": POLICY}
    assert sum(file.stat().st_size for file in cache.rglob("*") if file.is_file()) < 1 << 20


def test_a_remote_that_says_nothing_is_ended_with_all_its_processes(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_first(monkeypatch, tmp_path / "bin", "ssh", f"#!/bin/sh\necho $$ >{tmp_path}/pid\nexec sleep 60\n")
    bundle = read("git@example.com:x", cache, bounds=SourceBounds(deadline_seconds=2))
    assert codes(bundle) == ["RC514"]
    pid = (tmp_path / "pid").read_text().strip()
    deadline = time.monotonic() + 30
    while not _is_gone(pid):  # it is killed, and dies when it gets a core
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not list(cache.glob("*/new-*"))


def test_a_reading_is_called_off(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "called")
    put_first(monkeypatch, tmp_path / "bin", "ssh", f"#!/bin/sh\necho >{tmp_path}/called\nexec sleep 60\n")
    cancelled = threading.Event()

    def cancel_when_called() -> None:
        (tmp_path / "called").read_text()
        cancelled.set()

    waiting = threading.Thread(target=cancel_when_called)
    waiting.start()
    access = Access(cache, cancelled=cancelled)
    assert "canceled" in sentences(read_revision(GitPlace("git@example.com:x"), SourceBounds(), access))
    waiting.join()


ENDLESS = """
    import os, sys, zlib
    out, ask = sys.stdout.buffer, sys.stdin.buffer
    def packet(text):
        return b"%04x" % (len(text) + 4) + text
    def heard():
        length = int(ask.read(4), 16)
        return ask.read(length - 4) if length else b""
    head = b"1" * 40
    out.write(packet(head + b" HEAD\\0shallow\\n") + packet(head + b" refs/heads/main\\n") + b"0000")
    out.flush()
    if not heard():
        sys.exit()
    while heard():
        pass
    out.write(packet(b"shallow " + head) + b"0000")
    out.flush()
    while heard() != b"done\\n":
        pass
    out.write(packet(b"NAK\\n") + b"PACK" + (2).to_bytes(4, "big") + (200_000).to_bytes(4, "big"))
    while True:
        noise = os.urandom(1 << 16)
        out.write(bytes([0xB0, 0x80, 0x20]) + zlib.compress(noise, 0))
"""


def test_a_remote_that_sends_without_end_is_ended_by_the_disk_it_fills(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"#!{sys.executable}\n{textwrap.dedent(ENDLESS)}"
    put_first(monkeypatch, tmp_path / "bin", "ssh", script)
    bundle = read("git@example.com:x", cache, bounds=SourceBounds(disk_bytes=1 << 20, deadline_seconds=60))
    assert codes(bundle) == ["RC504"], sentences(bundle)
    assert "1,048,576 on disk" in sentences(bundle)
    assert sum(file.stat().st_size for file in cache.rglob("*") if file.is_file()) == 0


def test_a_cache_that_cannot_be_written_to_is_a_problem(far: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert codes(read(far, tmp_path / "file")) == ["RC515"]
    assert codes(read_revision(GitPlace(far), SourceBounds())) == ["RC515"]


class Host(http.server.ThreadingHTTPServer):
    """Serves one repository over HTTPS to whoever brings the token."""

    daemon_threads = True
    project: Path
    asked: list[str]


class Reply(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Host

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Says nothing."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

    def _answer(self, body: bytes) -> None:
        self.server.asked.append(self.headers.get("Authorization", ""))
        if self.path.startswith("/moved"):
            elsewhere = f"https://localhost:{self.server.server_port}/policies.git/info/refs"
            self._say(301, {"Location": elsewhere}, b"")
        elif self.headers.get("Authorization") != f"Basic {base64.b64encode(f'token:{TOKEN}'.encode()).decode()}":
            self._say(401, {"WWW-Authenticate": f'Basic realm="{self.headers.get("Authorization")}"'}, b"")
        else:
            head, _, content = self._ask_git(body).partition(b"\r\n\r\n")
            self._say(200, dict(line.split(": ", 1) for line in head.decode().splitlines()), content)

    def _say(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _ask_git(self, body: bytes) -> bytes:
        url = urlsplit(self.path)
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.project),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "PATH_INFO": url.path,
            "QUERY_STRING": url.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        done = subprocess.run([GIT, "http-backend"], env=environment, input=body, capture_output=True, check=True)
        return done.stdout


@pytest.fixture
def host(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    papers = write_papers(tmp_path)
    monkeypatch.setenv("GIT_SSL_CAINFO", str(papers.authority))
    server = Host(("127.0.0.1", 0), Reply)
    server.socket = papers.server_tls.wrap_socket(server.socket, server_side=True)
    server.project = repository.folder.parent
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def spoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where git's arguments are written down, and those of everything it starts by PATH."""
    script = f'#!/bin/sh\nprintf "%s\\n" "$*" >>{tmp_path}/spoken\nexec {GIT} "$@"\n'
    put_first(monkeypatch, tmp_path / "bin", "git", script)
    return tmp_path / "spoken"


def test_a_token_reaches_its_host_and_no_argument(
    repository: Repository, host: Host, spoken: Path, cache: Path
) -> None:
    commit = repository.commit({"policies/a.yaml": POLICY})
    bundle = read(f"https://127.0.0.1:{host.server_port}/policies.git", cache)
    assert bundle.revision == commit, sentences(bundle)
    assert TOKEN not in spoken.read_text()
    assert "fetch" in spoken.read_text()
    held = b"".join(file.read_bytes() for file in cache.rglob("*") if file.is_file())
    assert TOKEN.encode() not in held
    assert base64.b64encode(TOKEN.encode())[:12] not in held


def test_credentials_in_a_url_reach_no_problem_and_no_argument(host: Host, spoken: Path, cache: Path) -> None:
    address = f"https://me:wr0ng-s3cret@127.0.0.1:{host.server_port}/policies.git"
    bundle = read(address, cache)
    assert codes(bundle) == ["RC515"]
    encoded = base64.b64encode(b"me:wr0ng-s3cret").decode()
    assert host.asked[0] == f"Basic {encoded}"
    for secret in ("wr0ng-s3cret", encoded):
        assert secret not in repr(bundle)
        assert secret not in spoken.read_text()


def test_a_token_does_not_follow_to_another_host(host: Host, cache: Path) -> None:
    bundle = read(f"https://127.0.0.1:{host.server_port}/moved", cache)
    assert codes(bundle) == ["RC515"]
    assert len(host.asked) == 1


def _is_gone(pid: str) -> bool:
    """Ended, even if nobody has asked yet how."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
