"""Whatever a template tries, it becomes a problem of its own, and everything else is rendered."""

import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model.bundle import Rendering, RenderRequest, Text
from reconciler.sources import renderer
from reconciler.sources.renderer import RenderBounds, render
from tests.lab.places import REPOSITORY
from tests.unit.sources.rendering.stage import QUICK, problem_of, rendered, text_of

POOL = {"name": "a100", "values": [1], "labels": {"team": "x"}, "absent": None}
LOOP = "{% for i in range(10000) %}"
END = "{% endfor %}"

# Name, template, code of its problem.
HOSTILE = {
    "multiplies a text": ("{{ 'a' * 10**9 }}", "RC404"),
    "loops within loops": (3 * LOOP + 3 * END, "RC404"),
    "doubles a text": (
        "{% set t = namespace(x='a') %}{% for i in range(64) %}{% set t.x = t.x ~ t.x %}{% endfor %}{{ t.x }}",
        "RC404",
    ),
    "doubles a list": (
        "{% set t = namespace(x=[1]) %}{% for i in range(64) %}{% set t.x = t.x + t.x %}{% endfor %}{{ t.x }}",
        "RC404",
    ),
    "counts very far": ("{{ range(10**7) }}", "RC404"),
    "takes a large power": ("{{ 7 ** (10 ** 8) }}", "RC404"),
    "multiplies large numbers": (
        "{% set t = namespace(x=3) %}{% for i in range(64) %}{% set t.x = t.x * t.x %}{% endfor %}",
        "RC404",
    ),
    "pads a text": ("{{ 'x' | center(10**9) }}", "RC404"),
    "formats a wide number": ("{{ '%1000000000d' | format(1) }}", "RC404"),
    "justifies a text": ("{{ 'x'.ljust(10**9) }}", "RC404"),
    "writes without end": (2 * LOOP + "{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }}" + 2 * END, "RC404"),
    "writes lines without end": ("{% for i in range(10000) %}" + 50 * "\n\n" + END, "RC404"),
    "includes itself": ("{% include 'includes itself' %}", "RC404"),
    "calls itself": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RC404"),
    "nests deeply": ("{{ " + 5000 * "[" + 5000 * "]" + " }}", "RC404"),
    "asks for a class": ("{{ pool.__class__ }}", "RC403"),
    "asks for a class by key": ("{{ pool['__class__'] }}", "RC403"),
    "maps to a class": ("{{ [pool] | map(attribute='__class__') }}", "RC403"),
    "sorts by a class": ("{{ [pool] | sort(attribute='__class__') }}", "RC403"),
    "groups by a class": ("{{ [pool] | groupby('__class__') }}", "RC403"),
    "formats a class": ("{{ '{0.__class__}'.format(pool) }}", "RC403"),
    "formats a class from a map": ("{{ '{x.__class__}'.format_map({'x': pool}) }}", "RC403"),
    "looks behind itself": ("{{ self.__init__.__globals__ }}", "RC403"),
    "looks behind a macro": ("{% macro f() %}{% endmacro %}{{ f.__call__ }}", "RC403"),
    "changes a value": ("{{ pool.labels.update({}) }}", "RC403"),
    "changes a list": ("{{ pool['values'].append(1) }}", "RC403"),
    "leaves the folder": ("{% include '../secret' %}", "RC403"),
    "starts at the root": ("{% include '/etc/passwd' %}", "RC403"),
    "asks for a filter that looks inside": ("{{ pool | attr('__class__') }}", "RC401"),
    "maps with such a filter": ("{{ [pool] | map('attr', '__class__') }}", "RC406"),
    "marks a text as safe": ("{{ 'a: b' | safe }}", "RC401"),
    "filters what is written": ("{% filter upper %}{{ 'a' }}{% endfilter %}", "RC401"),
    "switches escaping": ("{% autoescape true %}{{ 'a' }}{% endautoescape %}", "RC401"),
    "calls a method for a block": ("{% call pool.name.format() %}{% endcall %}", "RC401"),
    "holds a line mark": ("a: \ue000x:1\ue001", "RC401"),
    "breaks lines in a foreign way": ("a: 1\u2028b: 2", "RC401"),
    "uses a global": ("{{ lipsum() }}", "RC402"),
    "hides a missing field in a list": ("{{ [pool] | map(attribute='nope') | list | string }}", "RC402"),
    "ends an if without else": ("{{ 'a' if false }}", "RC402"),
    "divides by zero": ("{{ 1 / 0 }}", "RC406"),
    "prints a method": ("{{ pool.items }}", "RC406"),
    "prints a macro": ("{% macro f() %}{% endmacro %}{{ f }}", "RC406"),
    "prints infinity": ("{{ 1e999 }}", "RC406"),
    "prints half a character": (r"{{ '\ud800' }}", "RC406"),
    "adds a number to a text": ("{{ pool.name + 1 }}", "RC406"),
}


@pytest.fixture(scope="module")
def among_innocents() -> dict[str, tuple[Rendering, Rendering]]:
    """Every hostile template, each followed by an innocent one, all in one call."""
    texts = [Text(name, template.encode()) for name, (template, _) in HOSTILE.items()]
    texts.append(Text("innocent", b"name: {{ pool.name }}\n"))
    asked = [RenderRequest(template, {"pool": POOL}) for name in HOSTILE for template in (name, "innocent")]
    done = render(texts, asked, QUICK)
    return dict(zip(HOSTILE, zip(done[::2], done[1::2], strict=True), strict=True))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_is_a_problem_and_those_beside_it_are_rendered(
    name: str, among_innocents: dict[str, tuple[Rendering, Rendering]]
) -> None:
    hostile, innocent = among_innocents[name]
    assert hostile.problem, hostile.text
    assert (hostile.problem.code, hostile.problem.file) == (HOSTILE[name][1], f"templates/{name}")
    assert innocent == Rendering('name: "a100"\n', (("templates/innocent", 1),))


@pytest.mark.parametrize("name", ["doubles a text", "writes without end", "loops within loops", "nests deeply"])
def test_a_hostile_template_costs_our_own_process_next_to_nothing(name: str) -> None:
    tracemalloc.start()
    try:
        started = time.process_time()
        problem_of(HOSTILE[name][0], {"pool": POOL})
        spent = time.process_time() - started
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert spent < 2
    assert peak < 64 << 20


def test_large_outputs_are_bounded_together() -> None:
    texts = [Text("large", b"{% for i in range(10000) %}" + 49 * b"0123456789abcdef" + b"\n{% endfor %}")]
    tracemalloc.start()
    try:
        done = render(texts, [RenderRequest("large", {}) for _ in range(6)])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [each.problem.code if each.problem else len(each.text) >> 20 for each in done] == [
        7,
        7,
        7,
        7,
        "RC404",
        "RC404",
    ]
    assert done[-1].problem
    assert "all renderings together exceed 32 MiB" in done[-1].problem.sentence
    assert peak < 64 << 20


def test_innocent_values_are_rendered_by_a_template_that_others_abuse() -> None:
    loop = "{% for i in range(n) %}"
    texts = [Text("t", (3 * loop + 3 * END).encode())]
    counts = [10_000, 2, 10_000, 3, 4]
    done = render(texts, [RenderRequest("t", {"n": count}) for count in counts], QUICK)
    assert [each.problem.code if each.problem else "" for each in done] == ["RC404", "", "RC404", "", ""]


def test_what_is_left_when_the_call_s_time_is_over_is_told_so() -> None:
    bounds = RenderBounds(call_seconds=0.5, share_seconds=5)
    texts = [Text("slow", HOSTILE["loops within loops"][0].encode())]
    done = render(texts, [RenderRequest("slow", {}), RenderRequest("slow", {})], bounds)
    for each in done:
        assert each.problem
        assert (each.problem.code, each.problem.line) == ("RC404", 0)
        assert "the time limit of 0.5 s for all renderings ended" in each.problem.sentence


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("import sys", "could not be started"),
        ("import sys; sys.exit('no')", "could not be started"),
        ("import os; print(flush=True); os.abort()", "more memory than the limit"),
        ("import os, signal; print(flush=True); os.kill(os.getpid(), signal.SIGXCPU)", "more time than the limit"),
        ("print('\\n{}', flush=True); input()", "more output than the limit"),
        ("print('\\n[', flush=True); input()", "more output than the limit"),
        ("print('\\n{\"index\": 7}', flush=True)", "more output than the limit"),
        ("print('\\n' + 200 * 'a', end='', flush=True); input(); input()", "more output than the limit"),
        ("import time; print(flush=True); time.sleep(60)", "for all renderings ended"),
        ("import time; time.sleep(60)", "for all renderings ended"),
    ],
)
def test_a_child_that_does_not_do_its_work_is_a_problem_and_no_exception(
    program: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renderer, "BEGIN", program)
    bounds = RenderBounds(call_seconds=0.4 if "sleep" in program else 20, rendering_bytes=50)
    (done,) = render([Text("t", b"a" * 100_000)], [RenderRequest("t", {})], bounds)
    assert done.problem
    assert done.problem.code == "RC404"
    assert sentence in done.problem.sentence


def test_a_machine_that_can_start_no_process_is_a_problem_and_no_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    problem = problem_of("a: 1")
    assert problem.code == "RC404"
    assert "could not be started" in problem.sentence


CONFINED = """
import json, os, socket, sys
sys.path += sys.argv[2:]
from reconciler.sources.rendering.child import main
job = json.load(sys.stdin)
main._confine(job["limits"])
told = dict(os.environ)
def attempt(name, deed):
    try:
        deed()
        told[name] = "done"
    except Exception as wrong:
        told[name] = type(wrong).__name__
attempt("read", lambda: open("/etc/passwd"))
attempt("connect", socket.socket)
attempt("write", lambda: open("/tmp/reconciler-child", "w"))
attempt("memory", lambda: bytearray(1 << 30))
print()
print(json.dumps({"index": 0, "text": json.dumps(told), "files": [], "lines": []}))
"""


def test_the_child_sees_none_of_our_environment_and_can_open_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    monkeypatch.setattr(renderer, "BEGIN", CONFINED)
    told = text_of("a: 1")
    assert "hunter2" not in told
    assert '"SECRET_TOKEN"' not in told
    assert '"PATH"' not in told
    for refused in ('"read": "OSError"', '"connect": "OSError"', '"write": "OSError"', '"memory": "MemoryError"'):
        assert refused in told


def children() -> set[str]:
    """Process ids of our children, those included that ended and were not waited for."""
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def test_no_process_is_left_behind() -> None:
    before = children()  # in a whole run, the lab's processes
    rendered(HOSTILE["loops within loops"][0])
    rendered("a: 1")
    assert children() == before


SCRIPT = """
from tests.unit.sources.rendering.stage import rendered
values = {"a": {"x": 1, "y": 2, "z": None}, "b": {"y": 3}, "t": "text"}
print(rendered("{{ a.keys() - b.keys() | list }} {{ a }} {{ t.upper | string }} {{ [t.upper] | join }}", values))
print(rendered("{{ a | map('upper') | string }}{{ range | string }}{{ a.items() | string }}", values))
"""


def test_the_same_bytes_come_out_twice_and_whatever_our_hashes_are() -> None:
    seen = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", SCRIPT.replace("a.keys() - b.keys() | list", "(a.keys() - b.keys()) | list")]
        done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
        seen.add(done.stdout)
    (told,) = seen
    assert "problem=None" in told
    assert " at 0x" not in told


def test_a_text_is_written_as_it_was_last_time_byte_by_byte() -> None:
    texts = [Text(path.name, path.read_bytes()) for path in sorted((REPOSITORY / "templates").iterdir())]
    asked = [RenderRequest("macro.j2", {"pool": POOL})]
    texts.append(Text("macro.j2", b"{% macro f(x) %}{{ x }}{% endmacro %}{{ f(pool) }}"))
    assert render(texts, asked) == render(texts, asked)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder of the working directory with a module that must not be imported."""
    (tmp_path / "jinja2.py").write_text("raise SystemExit('imported from the working directory')\n")
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


def test_nothing_is_imported_from_the_working_directory(elsewhere: Path) -> None:
    assert text_of("a: {{ b }}", {"b": 1}) == "a: 1"
