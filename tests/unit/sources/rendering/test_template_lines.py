"""Each line of a rendered text knows the template and line it came from, and each problem the line it is about."""

from collections import Counter

import pytest

from reconciler.model.bundle import Rendering, RenderRequest, Text
from reconciler.sources.renderer import render
from tests.unit.sources.rendering.stage import problem_of, rendered, text_of

# Name, template, and what is expected: the text with the number of its template line in front of each line.
MAPPED = {
    "plain text": ("a: 1\nb: 2\n", "1 a: 1\n2 b: 2\n"),
    "no newline at the end": ("a: 1\nb: 2", "1 a: 1\n2 b: 2"),
    "an empty line within": ("a: 1\n\nb: 2\n", "1 a: 1\n2 \n3 b: 2\n"),
    "nothing at all": ("", ""),
    "a loop": (
        "a:\n{% for i in [1, 2] %}\n  - {{ i }}\n    x: 1\n{% endfor %}\nb: 1\n",
        "1 a:\n3   - 1\n4     x: 1\n3   - 2\n4     x: 1\n6 b: 1\n",
    ),
    "a line that begins with a value": (
        "{% for k in ['a', 'b'] %}\n{{ k }}: {{ loop.index }}\n{% endfor %}\n",
        '2 "a": 1\n2 "b": 2\n',
    ),
    "a condition": (
        "{% if true %}\na: 1\n{% else %}\na: 2\n{% endif %}\n{% if false %}\nb: 1\n{% else %}\nb: 2\n{% endif %}\n",
        "2 a: 1\n9 b: 2\n",
    ),
    "a condition within a line": ("a: {% if true %}1{% endif %} # c\nb: 2\n", "1 a: 1 # c\n2 b: 2\n"),
    "a line put together from two": (
        "{% if true %}\n{% endif %}a: 1\nb: {% if true %}\n2\n{% endif %}\n",
        "2 a: 1\n3 b: 2\n",
    ),
    "blanks that are stripped": (
        "a: 1\n\n  {%- if true %}\n\n  b: 2\n  {%- endif -%}\n\n\nc: 3\n",
        "1 a: 1\n5   b: 2c: 3\n",
    ),
    "a comment of many lines": ("{# one\n   two #}\na: 1\n{# three #}\nb: 2\n", "3 a: 1\n5 b: 2\n"),
    "an expression of many lines": ("a: {{\n  1\n  + 1\n}}\nb: 2\n", "1 a: 2\n5 b: 2\n"),
    "raw text": ("a: 1\n{% raw %}\nb: {{ x }}\n{% endraw %}\nc: 3\n", "1 a: 1\n2 \n3 b: {{ x }}\n5 c: 3\n"),
    "lines that end the Windows way": ("a: 1\r\nb: {{ 2 }}\r\nc: 3\r\n", "1 a: 1\n2 b: 2\n3 c: 3\n"),
    "a byte order mark": ("\ufeffa: 1\n", "1 a: 1\n"),
    "a macro": (
        "{% macro pair(x) %}\nleft: {{ x }}\nright: {{ x }}\n{% endmacro %}\na: 1\n{{ pair(2) }}b: 2\n",
        "5 a: 1\n2 left: 2\n3 right: 2\n6 b: 2\n",
    ),
    "a macro that is indented": (
        "{% macro pair(x) %}\nleft: {{ x }}\nright: {{ x }}{% endmacro %}\na:\n  {{ pair(2) | indent(2) }}\nb: 2\n",
        "4 a:\n2   left: 2\n3   right: 2\n6 b: 2\n",
    ),
    "a block that is set": (
        "{% set x %}\n  - 1\n  - 2\n{% endset %}\na:\n{{ x }}b: 1\n",
        "5 a:\n2   - 1\n3   - 2\n6 b: 1\n",
    ),
    "a loop that calls itself": (
        "{% for n in [[1, [[2, []]]]] recursive %}\nn: {{ n[0] }}\n{{ loop(n[1]) }}{% endfor %}\nb: 1\n",
        "2 n: 1\n2 n: 2\n4 b: 1\n",
    ),
    "an include": ("a:\n{% include 'part.j2' %}\nb: {{ 2 }}\n", "1 a:\npart:1 - x: 7\npart:3 - y: 7\n3 b: 2\n"),
    "an include within a line": ("a: {% include 'word.j2' %} # c\nb: 2\n", "1 a: seven # c\n2 b: 2\n"),
    "an imported macro": (
        "{% import 'tools.j2' as t %}\na: 1\n{{ t.pair(2) }}",
        "2 a: 1\ntools:2 left: 2\ntools:3 right: 2\n",
    ),
    "a template that extends another": (
        "{% extends 'frame.j2' %}\n{% block body %}\nmiddle: 1\n{{ super() }}{% endblock %}\n",
        "frame:1 top: 1\n3 middle: 1\nframe:3 inner: 1\nframe:5 bottom: 1\n",
    ),
}
OTHERS = {
    "part": "- x: {{ 7 }}\n{# between #}\n- y: {{ 7 }}\n",
    "word": "seven",
    "tools": "{% macro pair(x) %}\nleft: {{ x }}\nright: {{ x }}\n{% endmacro %}\n",
    "frame": "top: 1\n{% block body %}\ninner: 1\n{% endblock %}\nbottom: 1\n",
}


@pytest.fixture(scope="module")
def all_at_once() -> dict[str, Rendering]:
    """Every template above and below, in one call: starting a child for each would be most of the time."""
    named = {name: case[0] for name, case in MAPPED.items()} | {name: case[0] for name, case in PLACED.items()}
    texts = [Text(name, text.encode()) for name, text in named.items()]
    texts += [Text(f"{name}.j2", text.encode()) for name, text in OTHERS.items()]
    values = {"pool": {"name": "a", "absent": None}}
    return dict(zip(named, render(texts, [RenderRequest(name, values) for name in named]), strict=True))


@pytest.mark.parametrize("name", MAPPED)
def test_lines_are_mapped_through(name: str, all_at_once: dict[str, Rendering]) -> None:
    rendering = all_at_once[name]
    assert rendering.problem is None, rendering.problem
    lines = rendering.text.splitlines(keepends=True)
    places = [file.removeprefix("templates/").removesuffix(".j2") + f":{line}" for file, line in rendering.lines]
    told = [f"{place.removeprefix(f'{name}:')} {text}" for place, text in zip(places, lines, strict=True)]
    assert "".join(told) == MAPPED[name][1]


def test_template_code_does_not_see_the_marks() -> None:
    template = (
        "{% set x %}\nab\n{% endset %}\n{{ x | length }} {{ x == 'ab\\n' }} {{ x ~ '!' }} {{ [x] }} {{ x | upper }}"
    )
    assert text_of(template) == '3 true "ab\\n!" ["ab\\n"] "AB\\n"'


def test_a_template_without_values_and_one_that_is_empty_are_rendered() -> None:
    assert rendered("").text == ""
    assert render([], []) == ()


# Name, template, and code, line, column, width and sentence of its problem; no sentence where it is Jinja's own.
PLACED: dict[str, tuple[str, str, tuple[int, int, int], str]] = {
    "a value that is not there": (
        "a: 1\nb: {{ polo.name }}\n",
        "RC402",
        (2, 7, 4),
        'there is no value "polo"; did you mean "pool"?',
    ),
    "a field that is not there": (
        "a: 1\n\nb: {{ pool.nmae }}\n",
        "RC402",
        (3, 12, 4),
        'there is no field "nmae" in this map; did you mean "name"?',
    ),
    "a field like no other": ("{{ pool.zzz }}", "RC402", (1, 9, 3), 'there is no field "zzz" in this map'),
    "a field of null": ("{{ pool.absent.x }}", "RC402", (1, 16, 1), '"x" is read from null'),
    "a field of a text": ("{{ pool.name.size }}", "RC402", (1, 14, 4), 'a string has no "size"'),
    "a filter that is not there": (
        "a\nb: {{ 1 | lenght }}",
        "RC401",
        (2, 11, 6),
        'there is no filter "lenght"; did you mean "length"?',
    ),
    "a filter that is not needed": ("{{ 1 | tojson }}", "RC401", (1, 8, 6), 'there is no filter "tojson"'),
    "a test that is not there": (
        "{{ 1 is defind }}",
        "RC401",
        (1, 9, 6),
        'there is no test "defind"; did you mean "defined"?',
    ),
    "a tag that is not there": ("a\n{% iff x %}", "RC401", (2, 4, 3), 'there is no tag "iff"; did you mean "if"?'),
    "a tag that is not closed": ("a: 1\n{% if true %}\nb: 2\n", "RC401", (3, 1, 4), ""),
    "an expression that is not closed": ("a: 1\nb: {{ 1\n", "RC401", (2, 1, 7), ""),
    "a template that is not there": (
        "a\n{% include 'parts.j2' %}",
        "RC405",
        (2, 13, 8),
        'there is no template "parts.j2"; did you mean "part.j2"?',
    ),
    "what is refused": (
        "a: 1\n\n{{ pool.__class__ }}",
        "RC403",
        (3, 1, 20),
        'a template may not use the attribute "__class__" of a map',
    ),
    "what takes too much": (
        "a: 1\nb: {{ range(20000) }}",
        "RC404",
        (2, 1, 21),
        "rendering takes a range of 20,000 numbers, more than 10,000",
    ),
    "what fails": (
        "a: 1\n{% for i in [0] %}\n{{ 1 / i }}\n{% endfor %}",
        "RC406",
        (3, 1, 11),
        "the template cannot be rendered: division by zero",
    ),
}


@pytest.mark.parametrize("name", PLACED)
def test_a_problem_points_to_the_line_and_the_word(name: str, all_at_once: dict[str, Rendering]) -> None:
    template, code, place, sentence = PLACED[name]
    problem = all_at_once[name].problem
    assert problem
    assert (problem.file, problem.code) == (f"templates/{name}", code)
    assert (problem.line, problem.column, problem.width) == place
    assert problem.excerpt == template.splitlines()[place[0] - 1]
    assert sentence in {"", problem.sentence}


@pytest.mark.parametrize(
    ("part", "code", "line"),
    [("a: 1\n{{ nope }}", "RC402", 2), ("{% if %}", "RC401", 1), ("\n\n{% include 'gone.j2' %}", "RC405", 3)],
)
def test_a_problem_in_an_included_template_stands_in_that_file(part: str, code: str, line: int) -> None:
    problem = problem_of("x\n{% include 'part.j2' %}", {}, part=part)
    assert (problem.file, problem.code, problem.line) == ("templates/part.j2", code, line)


@pytest.mark.parametrize(
    ("asked", "code", "sentence"),
    [
        ("man.j2", "RC405", 'there is no template "man.j2"; did you mean "main.j2"?'),
        ("../main.j2", "RC403", '"../main.j2" is outside of the templates folder'),
        ("/main.j2", "RC403", '"/main.j2" is outside of the templates folder'),
        ("no\nname", "RC405", 'there is no template "no\nname"'),
    ],
)
def test_a_template_that_is_asked_for_and_not_there_is_a_problem(asked: str, code: str, sentence: str) -> None:
    (done,) = render([Text("main.j2", b"a: 1")], [RenderRequest(asked, {})])
    assert done.problem
    assert (done.problem.file, done.problem.line, done.problem.code) == ("", 0, code)
    assert done.problem.sentence == sentence
    assert done.problem.remedy


def test_a_template_that_is_not_utf_8_is_a_problem_only_for_those_who_use_it() -> None:
    texts = [Text("bad.j2", b"a: 1\nb: \xff\n"), Text("good.j2", b"a: 1\n"), Text("uses.j2", b"{% include 'bad.j2' %}")]
    done = render(texts, [RenderRequest(text.path, {}) for text in texts])
    assert [each.text for each in done] == ["", "a: 1\n", ""]
    for each in (done[0], done[2]):
        assert each.problem
        assert (each.problem.file, each.problem.line, each.problem.code) == ("templates/bad.j2", 2, "RC401")
        assert "byte 9 of the file is not UTF-8" in each.problem.sentence


def test_a_sentence_with_half_a_character_is_still_told() -> None:
    problem = problem_of(r"{{ pool['\ud800'] }}", {"pool": {}})
    assert (problem.code, problem.line) == ("RC402", 1)


def test_each_place_is_kept_once_however_many_lines_came_from_it() -> None:
    rendering = rendered("{% for i in range(1000) %}\na: {{ i }}\n{% endfor %}")
    assert Counter(rendering.lines) == {("templates/main.j2", 2): 1000}
    assert len({id(place) for place in rendering.lines}) == 1
