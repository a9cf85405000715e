"""YAML is read strictly, and nothing that it can contain takes long or much to refuse."""

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from reconciler.policy.tree import plain
from reconciler.policy.yaml import MAX_BYTES, MAX_DEPTH, read
from tests.lab.places import REPOSITORY

WORDS = (
    "no No NO yes on off y N True FALSE Null NULL 012 0o14 0x1F 0b1 1_000 +12 1e3 1.5e3 .5 5. .inf -.Inf .nan "
    "12:30:45 1:30 2026-01-01 2026-1-1T10:00:00Z 00 01.5 ="
)


def codes(text: str) -> list[str]:
    return [each.code for each in read("x.yaml", text.encode())[1]]


def value(text: str) -> object:
    (node,), problems = read("x.yaml", f"v: {text}".encode())
    assert problems == []
    return plain(node)["v"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("0", 0),
        ("-12", -12),
        ("0.5", 0.5),
        ("40Gi", "40Gi"),
        ("10.0.0.1", "10.0.0.1"),
        ("g6.12xlarge", "g6.12xlarge"),
        ("85%", "85%"),
        ("1h30m", "1h30m"),
        ('"no"', "no"),
        ("'012'", "012"),
        ('"12:30:45"', "12:30:45"),
        ("nothing", "nothing"),
        ("-", "-"),
        ("https://example.com:8080", "https://example.com:8080"),
        ("9b3c6f0e-52d1-4c0a-9f5e-0d6f6a1c7e21", "9b3c6f0e-52d1-4c0a-9f5e-0d6f6a1c7e21"),
    ],
)
def test_words_that_all_readers_agree_on_are_taken(text: str, expected: object) -> None:
    if text == "-":
        expected, text = "-", '"-"'
    assert value(text) == expected


@pytest.mark.parametrize("text", WORDS.split())
def test_words_that_readers_take_differently_are_refused_with_the_way_to_write_them(text: str) -> None:
    nodes, (found,) = read("x.yaml", f"v: {text}".encode())
    assert found.code == "RC009"
    assert (found.line, found.column, found.width) == (1, 4, len(text))
    assert f'"{text}" in quotes' in found.remedy
    assert nodes


def test_a_key_twice_names_the_first() -> None:
    _, (found,) = read("x.yaml", b"a: 1\nb: {c: 1, d: 2}\na: 3\n")
    assert (found.line, found.remedy) == (3, "first used in line 1; remove one of them")


def test_an_alias_is_a_copy() -> None:
    (node,), problems = read("x.yaml", b"a: &limits {x: 1}\nb: *limits\n")
    assert problems == []
    assert plain(node) == {"a": {"x": 1}, "b": {"x": 1}}


def test_anchors_end_with_their_document() -> None:
    assert codes("a: &x 1\n---\nb: *x\n") == ["RC005"]


def test_documents_without_anything_in_them_are_left_out() -> None:
    nodes, problems = read("x.yaml", b"---\n# nothing\n---\na: 1\n---\n...\n")
    assert (len(nodes), problems) == (1, [])


def test_what_follows_a_broken_document_is_not_guessed() -> None:
    nodes, problems = read("x.yaml", b"a: 1\n---\nb: [\n---\nc: 1\n")
    assert nodes == []
    assert [each.code for each in problems] == ["RC001"]


def test_a_file_that_is_not_utf_8_says_where() -> None:
    _, (found,) = read("x.yaml", b"a: 1\nb: \xff\n")
    assert (found.code, found.line) == ("RC001", 2)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert codes("\ufeffa: 1\n") == []


@pytest.mark.parametrize(
    "text", ["a: 1\r\nb: 2\r\n", "# \U0001f469\u200d\U0001f4bb writes\na: 1\n", 'a: "x\\r\\u2028y"\n', "a: \tb\n"]
)
def test_line_breaks_of_windows_emoji_and_escapes_hide_nothing(text: str) -> None:
    assert codes(text) == []


@pytest.mark.parametrize(
    "character", ["\r", "\x85", "\u2028", "\u2029", "\u202e", "\u2066", "\u200f", "\x0c", "\U000e0041"]
)
def test_a_character_that_can_hide_text_is_refused_where_it_stands(character: str) -> None:
    _, (found,) = read("x.yaml", f"a: 1\n# x{character}  b: 2\n".encode())
    assert (found.code, found.line, found.column) == ("RC011", 2, 4)


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = {
    "alias bomb": (BOMB, "RC005"),
    "merge bomb": (BOMB.replace("[", "{<<: [").replace("]", "]}"), "RC005 RC006"),
    "alias of what encloses it": ("a: &a {b: [*a]}", "RC005"),
    "deep flow": ("[" * 500_000, "RC004"),
    "deep maps": ("{a: " * 200_000, "RC004"),
    "deep blocks": ("".join(f"{' ' * depth}a:\n" for depth in range(1400)), "RC004"),
    "many values": ("- a\n" * 250_000, "RC005"),
    "many keys": ("".join(f"k{number:x}:\n" for number in range(110_000)), "RC005"),
    "huge number": ("a: " + "9" * 900_000, "RC010"),
    "huge float": ("a: " + "9" * 500_000 + "." + "9" * 400_000, ""),
    "huge text": ("a: " + "x" * 1_000_000, ""),
    "huge key": ("x" * 100_000 + ": 1", "RC001"),
    "too large": ("# " + "x" * MAX_BYTES, "RC003"),
    "python object": ("a: !!python/object/apply:os.system [ls]", "RC008"),
    "many anchors": ("".join(f"- &a{number} x\n" for number in range(60_000)), ""),
    "absurd date": ("a: 99999-99-99", ""),
    "not a number": ("a: .nan", "RC009"),
    "control character": ("a: \x07", "RC011"),
    "many documents": ("--- 1\n" * 150_000, "RC005"),
    "unfinished": ("a: 'x\n" * 100, "RC001"),
    "many ambiguous words": ("- no\n" * 90_000, "RC009"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_hostile_is_refused_or_taken_within_a_second(name: str) -> None:
    text, code = HOSTILE[name]
    started = time.process_time()
    _, problems = read("x.yaml", text.encode())
    assert time.process_time() - started < 1
    assert {each.code for each in problems} == set(code.split())


def test_what_is_hostile_takes_at_most_64_mb() -> None:
    """In a process of its own, whose peak nothing else has raised."""
    script = (
        "import resource; from tests.unit.policy.test_yaml_text import HOSTILE, read\n"
        "texts = {name: text.encode() for name, (text, _) in HOSTILE.items()}\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for name, text in texts.items(): read(name, text)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 64 * 1024


def test_the_deepest_that_is_allowed_is_read() -> None:
    assert codes("[" * MAX_DEPTH + "]" * MAX_DEPTH) == []
    assert codes("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)) == ["RC004"]


@given(some.binary(max_size=300))
def test_any_bytes_give_documents_or_problems(content: bytes) -> None:
    read("x.yaml", content)


@given(some.text(alphabet="abc:-{}[]&*!|>'\"#%@`,? \n\t0123456789.", max_size=120))
def test_anything_that_looks_like_yaml_gives_documents_or_problems(text: str) -> None:
    for problem in read("x.yaml", text.encode())[1]:
        assert problem.line >= 0
        assert problem.sentence
