"""Lines of the demo keep within the terminal, lose nothing, and hang where the eye looks for them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.cli.demo import folded


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("  short", ["  short"]),
        ("   one two three four five six", ["   one two three four", "       five six"]),
        ("   name  one two three four", ["   name  one two three", "         four"]),
        ("\x1b[31m   one two three four five\x1b[0m", ["\x1b[31m   one two three four", "       five\x1b[0m"]),
        ("   areallylongwordthatfitsnowhere and", ["   areallylongwordthatfitsnowhere", "       and"]),
    ],
)
def test_a_line_hangs_below_its_last_column_or_a_little_further_in(line: str, told: list[str]) -> None:
    assert folded(line, 22) == told


def test_without_a_terminal_no_line_is_folded() -> None:
    assert folded("one " * 100, None) == ["one " * 100]


@given(st.lists(st.text("ab", min_size=1, max_size=9), min_size=1, max_size=30), st.integers(20, 60))
def test_all_words_are_there_and_no_line_is_too_long(words: list[str], width: int) -> None:
    lines = folded("  " + " ".join(words), width)
    assert " ".join(lines).split() == words
    assert all(len(line) <= width for line in lines)
    assert not any(re.search(r"\s$", line) for line in lines)
