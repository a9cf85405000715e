"""What to write instead of a value that cannot be read, where the intended value is plain."""

import json
import re
from decimal import Decimal

from reconciler.model.quantity import Duration
from reconciler.policy.shape import Choice, Flag, ListOf, MapOf, Measured, Object, Shape, WholeNumber, Words
from reconciler.policy.tree import Mapping, Node, Path, Scalar, Sequence, plain
from reconciler.policy.words import meant, number_word

# Spellings of the units of a duration, and the seconds of each.
_SECONDS = {
    seconds: re.compile(words)
    for seconds, words in (
        (1, "s|sec|secs|seconds?"),
        (60, "m|min|mins|minutes?"),
        (3_600, "h|hr|hrs|hours?"),
        (86_400, "d|days?"),
        (604_800, "w|wk|wks|weeks?"),
    )
}
_DURATION_PART = re.compile(r"\s*([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*([A-Za-z]+)\s*,?")
_SHARE = re.compile(r"0?\.[0-9]{1,2}|1\.0{1,2}")
_LONGEST = 80  # characters of a form that is shown


def advice(shape: Shape, node: Node, path: Path) -> str:
    """The remedy for a value of the wrong type; nothing where nobody can tell what was meant."""
    match shape, node:
        case ((Object() | MapOf()), Sequence()):
            return _map_form(shape, node)
        case ListOf(), Mapping():
            return _list_form(plain(node))
        case _, Scalar():
            return _scalar_advice(shape, node, path)
    return ""


def measure_advice(shape: Measured, text: str) -> str:
    """Never for never, 15m for 15min, 40G for 40GB, 24h for 1d, 85% for 85."""
    if close := meant(text, shape.words):
        return f"write {close}"
    match shape.measure.__name__:
        case "Duration":
            return f"write {duration}" if (duration := _duration(text)) else ""
        case "Percent":
            return f"write {percent}%" if (percent := _percent(text)) else ""
        case "Quantity":
            shorter = text[:-1] if text[-1:] in {"B", "b"} else ""
            return f"write {shorter}, or {shorter}i for powers of 1024" if shorter[-1:] in set("kMGTP") - {""} else ""
    return ""


def _scalar_advice(shape: Shape, node: Scalar, path: Path) -> str:
    match shape, node.value:
        case WholeNumber(), _ if advised := _integer(node, path):
            return f"write {advised}"
        case Flag(), str() if node.text in {"true", "false"}:
            return f"write {node.text} without quotes"
        case (Words() | Choice(), _) if node.value is not None:
            return f'write "{node.text}" in quotes'
        case Measured(), int() | float() if shape.measure.__name__ == "Money":
            return f'write "{node.text}" in quotes'
        case Measured(), int() | float():
            return measure_advice(shape, node.text) or f"add a unit: {node.text}s, {node.text}m or {node.text}h"
        case Object(), _ if node.value is not None and (whole := _only_required(shape, node)):
            return f"write {whole}"
        case ListOf(item=Object() as item), _:
            return f"write [{whole}]" if (whole := _only_required(item, node)) else ""
        case ListOf(), str():
            return f"write {_list_of(node)}"
    return ""


def _integer(node: Scalar, path: Path) -> str:
    """two is 2; "8" is 8 without quotes; of a percentage "80%" is 80 and 0.85 is 85."""
    if isinstance(node.value, str) and (number := number_word(node.text)) is not None:
        return str(number)
    if isinstance(node.value, str) and re.fullmatch(r"[0-9]{1,9}", node.text):
        return f"{node.text} without quotes"
    return _percent(node.text) if str(path[-1]).endswith("Percent") else ""


def _percent(text: str) -> str:
    """The number of a percentage that was written 80%, 80 or 0.8."""
    text = text.strip()
    if _SHARE.fullmatch(text):
        return str(int(Decimal(text) * 100)) if Decimal(text) else ""
    number = text.removesuffix("%").strip()
    return number if re.fullmatch(r"100|[0-9]{1,2}", number) else ""


def _duration(text: str) -> str:
    """15m for 15min, 1h30m for "1 hour 30 minutes", 24h for 1d; nothing for what is no duration."""
    seconds, at = Decimal(0), 0
    for part in _DURATION_PART.finditer(text):
        unit = next((unit for unit, words in _SECONDS.items() if words.fullmatch(part[2].lower())), None)
        if part.start() != at or unit is None:
            return ""
        seconds, at = seconds + Decimal(part[1]) * unit, part.end()
    whole = f"{seconds * 1000:.0f}ms"
    return str(Duration.parse(whole)) if 0 < at == len(text) and seconds < 10**6 else ""


def _only_required(shape: Object, node: Scalar) -> str:
    """{name: p5.48xlarge} for p5.48xlarge, where nothing else is needed."""
    required = [field for field in shape.fields if field.required]
    is_plain = re.fullmatch(r"[A-Za-z][\w.-]*", node.text)
    if len(required) != 1 or not isinstance(required[0].shape, Words) or not is_plain:
        return ""
    return f"{{{required[0].name}: {node.text}}}"


def _list_of(node: Scalar) -> str:
    """One item, in quotes where YAML would take the bare word for something else."""
    is_plain = re.fullmatch(r"[A-Za-z][\w./-]*", node.text)
    return f"[{node.text}]" if is_plain else f"[{json.dumps(node.text, ensure_ascii=False)}]"


def _map_form(shape: Object | MapOf, node: Sequence) -> str:
    """The items as one map, where that is short and loses nothing; else the names that a map begins with."""
    merged: dict[str, object] = {}
    for item in node.items:
        entries = plain(item) if isinstance(item, Mapping) else {}
        merged |= {key: value for key, value in entries.items() if key not in merged}
    if sum(len(item.entries) if isinstance(item, Mapping) else 1 for item in node.items) == len(merged) > 0:
        form = _flow(merged)
        if len(form) <= _LONGEST:
            return f"write a map, without dashes: {form}"
    if isinstance(shape, MapOf):
        return "write a map, without dashes: {KEY: VALUE}"
    names = shape.required or [field.name for field in shape.fields[:2]]
    return f"write a map, without dashes: {{{', '.join(f'{name}: ...' for name in names)}}}"


def _list_form(value: object) -> str:
    form = f"[{_flow(value)}]"
    return f"write a list: {form}" if len(form) <= _LONGEST else 'begin each item with "- "'


def _flow(value: object) -> str:
    """YAML in one line, which YAML reads back as the same value."""
    match value:
        case dict():
            return f"{{{', '.join(f'{_flow(key)}: {_flow(each)}' for key, each in value.items())}}}"
        case list():
            return f"[{', '.join(map(_flow, value))}]"
        case str() if re.fullmatch(r"[A-Za-z][\w./-]*", value) and value.lower() not in {"true", "false", "null"}:
            return value
    return json.dumps(value, ensure_ascii=False)
