"""No value can change the shape of the YAML that it is written into, wherever a template puts it."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.model.bundle import Rendering, RenderRequest, Text
from reconciler.sources.renderer import render
from reconciler.sources.rendering.child.line_marks import FOREIGN
from reconciler.sources.rendering.child.sandbox import Unwritable, written
from tests.unit.sources.rendering.stage import text_of

ANY_TEXT = some.text(some.characters(exclude_categories=["Cs"]))
# What means something to YAML, close together.
POINTED = some.text(alphabet="a:,[]{}#'\"\\-?&*!|>%@`~ \t\n\r0<=.\u2028\x85\x7f\ue000\ue001\U0001f600", max_size=12)
KEYS = POINTED | ANY_TEXT
LEAVES = some.none() | some.booleans() | some.integers(-(2**70), 2**70) | some.floats(allow_nan=False) | KEYS
FINITE = LEAVES.filter(lambda value: not isinstance(value, float) or abs(value) != float("inf"))
VALUES = some.recursive(
    FINITE, lambda inner: some.lists(inner, max_size=4) | some.dictionaries(KEYS, inner, max_size=4), max_leaves=8
)

# A value, where templates are meant to put one.
MEANT = (
    "a: @\nb: 1\n",
    "- @\n- x\n",
    "a:\n  - k: @\n    z: 1\nb: 2\n",
    "a: {k: @, z: 1}\n",
    "a: [1, @, 2]\n",
    "a: @ # said\nb: 1\n",
)
# A text, where none should be put: within a text of the template, of each style.
NOT_MEANT = (
    'a: "@"\nb: 1\n',
    "a: '@'\nb: 1\n",
    "a: x@y\nb: 1\n",
    "a: x @ y\nb: 1\n",
    "a: {k: x@, z: 1}\n",
    'a: {k: "@", z: 1}\n',
    "a: {k: 'x @', z: 1}\n",
    'a: ["@", 1]\n',
    "a: [x @ y, 1]\n",
    "a@: 1\nb: 2\n",
    '{"@": 1, b: 2}\n',
    "a: |\n  x @\nb: 1\n",
    "a: >-\n  @\nb: 1\n",
    "a: 1 # @\nb: 2\n",
    "# @\na: 1\n",
    "a: &@ 1\nb: 2\n",
    "a: !@ 1\nb: 2\n",
    "@\n",
    "x@: 1\n",
)


def shape(text: str) -> Any:
    """What a text is to YAML, with every scalar alike; nothing where it is no YAML."""
    try:
        return [_shape(node) for node in yaml.compose_all(text, Loader=yaml.CSafeLoader)]
    except yaml.YAMLError:
        return None


def _shape(node: yaml.Node | None) -> Any:
    match node:
        case yaml.MappingNode():
            return {"map": [(_shape(key), _shape(value)) for key, value in node.value]}
        case yaml.SequenceNode():
            return {"list": [_shape(item) for item in node.value]}
    return "scalar"


@given(value=VALUES)
@settings(max_examples=300)
def test_a_value_is_read_back_as_it_was(value: Any) -> None:
    for template in MEANT:
        text = template.replace("@", written(value))
        expected = yaml.load(template.replace("@", "VALUE"), Loader=yaml.CSafeLoader)
        assert yaml.load(text, Loader=yaml.CSafeLoader) == _replaced(expected, value)


def _replaced(document: Any, value: Any) -> Any:
    match document:
        case "VALUE":
            return value
        case dict():
            return {key: _replaced(each, value) for key, each in document.items()}
        case list():
            return [_replaced(each, value) for each in document]
    return document


@given(value=KEYS)
@settings(max_examples=500)
def test_a_text_where_none_should_be_has_no_other_shape_than_a_harmless_one(value: str) -> None:
    for template in NOT_MEANT:
        # Refused as no YAML is fine; what was accepted with another text has the same shape with this one.
        found = shape(template.replace("@", written(value)))
        assert found in (None, shape(template.replace("@", '"a"')), shape(template.replace("@", '""'))), template


@given(value=VALUES)
def test_a_value_is_one_line_of_ascii_that_no_line_mark_is_in(value: Any) -> None:
    text = written(value)
    assert text.isascii()
    assert "\n" not in text
    assert not FOREIGN.search(text)


@given(values=some.lists(VALUES, min_size=1, max_size=8))
@settings(max_examples=10)
def test_values_come_through_the_child_unchanged(values: list[Any]) -> None:
    template = "{% for value in values %}\n- {{ value }}\n- {{ {'k': value} }}\n- {{ [value] }}\n{% endfor %}\n"
    expected = [each for value in values for each in (value, {"k": value}, [value])]
    assert yaml.load(text_of(template, {"values": values}), Loader=yaml.CSafeLoader) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("registry.k8s.io/pause:3.9", '"registry.k8s.io/pause:3.9"'),
        ("0 20 * * *", '"0 20 * * *"'),
        ("nvidia.com/gpu", '"nvidia.com/gpu"'),
        ("a: b", r'"a\u003a b"'),
        ("x, y", r'"x\u002c y"'),
        ("ü", r'"\u00fc"'),
        ("\U0001f600", r'"\U0001f600"'),
        (None, "null"),
        (True, "true"),
        (1e16, "1.0e+16"),
        ({"b": [1, "x"], "a": {}}, '{"a": {}, "b": [1, "x"]}'),
    ],
)
def test_what_people_write_often_stays_readable(value: Any, text: str) -> None:
    assert written(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: 2}, {"a": [set()]}, b"x", "\ud800"])
def test_what_is_no_value_is_refused_with_a_sentence(value: Any) -> None:
    with pytest.raises(Unwritable, match=r"cannot be written|must be texts|half a surrogate pair"):
        written(value)


# What template code can do to a text on its way out.
ATTEMPTS = (
    "{{ x }}",
    "{{ x | string }}",
    "{{ x | indent(2) }}",
    "{{ [x] | join }}",
    "{{ x ~ '' }}",
    "{{ '%s' | format(x) }}",
    "{{ '{}'.format(x) }}",
    "{% set y = x %}{{ y }}",
    "{% set y %}{{ x }}{% endset %}{{ y }}",
    "{% set y | upper %}{{ x }}{% endset %}{{ y }}",
    "{% set y %}{{ x }}{% endset %}{{ y | replace('\"', '') }}",
    "{% set y %}{{ x }}{% endset %}{{ y[1:] }}",
    "{% set y %}{{ x }}{% endset %}{{ y.strip('\"') }}",
    "{% set y %}{{ x }}{% endset %}{{ y | indent(x) }}",
    "{% macro m() %}{{ x }}{% endmacro %}{{ m() | trim('\"') }}",
    "{% macro m() %}{{ x }}{% endmacro %}{{ m().format() }}",
    "{% macro m() %}{{ x }}{% endmacro %}{{ [m(), m()] | join(': ') }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(x) | default(x) }}",
    "{% print x %}",
    "{% for c in x %}{{ c }}{% endfor %}",
    "{{ x if x else x }}",
    "{{ x and x }}",
    "{{ namespace(y=x).y }}",
    "{% with y = x %}{{ y }}{% endwith %}",
    "{{ [x] | first }}",
    "{{ {'y': x}.y }}",
    "{{ x | default('') }}",
)


@pytest.fixture(scope="module")
def attempted() -> dict[str, Rendering]:
    texts = [Text(str(number), f"{attempt}\n".encode()) for number, attempt in enumerate(ATTEMPTS)]
    done = render(texts, [RenderRequest(text.path, {"x": "k: v"}) for text in texts])
    return dict(zip(ATTEMPTS, done, strict=True))


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_text_is_not_written_without_quotes_by(attempt: str, attempted: dict[str, Rendering]) -> None:
    rendering = attempted[attempt]
    assert "k: v" not in rendering.text.replace('"k: v"', "")
    assert shape(rendering.text) in (None, [], ["scalar"])
