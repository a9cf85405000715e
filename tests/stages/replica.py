"""A replica of the controller as it is run: a process of its own, judged by its log, its endpoints and the cluster."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import urllib3

Line = dict[str, Any]

PROGRAM = ("reconciler",)


class Replica:
    """`reconciler run`, while in a `with` block; owner of the process and of the lines that it wrote."""

    def __init__(
        self, kubeconfig: Path, policies: Path | None, *arguments: str, program: Sequence[str] = PROGRAM
    ) -> None:
        """Without a folder of policies it follows the custom resources."""
        source = ["--policies", str(policies)] if policies else ["--resources"]
        command = [sys.executable, "-m", *program, "run", *source, "--listen", "127.0.0.1:0"]
        self._process = subprocess.Popen(
            [*command, "--log-format", "json", *arguments],
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        self.lines: list[Line] = []
        self._ended = False
        self._moved = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        """Whatever goes on."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
        self._process.wait()
        self._thread.join()
        if self._process.stderr:
            self._process.stderr.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def address(self) -> str:
        told = self.wait_for(lambda line: line["event"] == "started")["message"]
        found = re.search(r"listens on (\S+)$", told)
        assert found, told
        return f"http://{found[1]}"

    def get(self, path: str) -> tuple[int, str]:
        """What an endpoint answers."""
        answer = urllib3.request("GET", self.address + path, timeout=10, retries=False)
        return answer.status, answer.data.decode()

    def wait_until_leading(self, within: float = 60) -> None:
        self.wait_for(lambda line: line["message"] == "this replica leads", within)

    def wait_for(self, is_it: Callable[[Line], Any], within: float = 60, since: int = 0) -> Line:
        """The first line that it is, from the `since`th on."""
        found: list[Line] = []

        def is_there() -> bool:
            found[:] = [line for line in self.lines[since:] if is_it(line)][:1]
            return bool(found) or self._ended

        with self._moved:
            self._moved.wait_for(is_there, within)
        assert found, "\n".join(map(str, self.lines))
        return found[0]

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self, within: float = 30) -> tuple[int, float]:
        """Until it ends; gives its exit code, and how long that took."""
        began = time.monotonic()
        code = self._process.wait(within)
        self._thread.join()
        return code, time.monotonic() - began

    def terminate(self, within: float = 30) -> tuple[int, float]:
        self.signal(signal.SIGTERM)
        return self.wait(within)

    def kill(self) -> None:
        """At once, and with nothing given back."""
        self.signal(signal.SIGKILL)
        self.end()

    @property
    def leads(self) -> bool:
        """By its own last word on it."""
        said = [line["message"] for line in list(self.lines) if line["event"] == "leadership"]
        turns = [message for message in said if message.startswith("this replica")]
        return bool(turns) and turns[-1] == "this replica leads"

    def planner(self) -> int:
        """Its child that plans; others render now and then."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/children")
        children = {each for task in tasks for each in _text_of(task).split()}
        found = [each for each in children if "planner_process" in _text_of(Path(f"/proc/{each}/cmdline"))]
        assert len(found) == 1, found
        return int(found[0])

    def _read(self) -> None:
        for text in self._process.stderr or ():
            try:
                line = json.loads(text)
            except ValueError:
                line = {"event": "", "message": text.decode(errors="replace").rstrip()}
            with self._moved:
                self.lines.append(line)
                self._moved.notify_all()
        with self._moved:
            self._ended = True
            self._moved.notify_all()


def _text_of(path: Path) -> str:
    """Nothing where the process, or the thread, has just ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
