"""Texts of problems: titles of codes, expected values and suggested corrections."""

import difflib
import json
import re
from collections.abc import Iterable
from decimal import Decimal

from reconciler.model.fields import Within
from reconciler.model.quantity import LONGEST_MILLISECONDS, Duration, Money, Percent, Quantity
from reconciler.policy.shape import Choice, Flag, ListOf, MapOf, Measure, Measured, Object, Shape, WholeNumber, Words
from reconciler.policy.tree import LONGEST_WORD, Mapping, Node, Path, Scalar, Sequence, plain

_NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_MEASURES: dict[Measure, str] = {
    Quantity: "a quantity such as 8, 500m or 40Gi",
    Duration: "a duration such as 90s, 30m or 1h30m",
    Percent: "a percentage from 0% to 100%, such as 85%",
    Money: 'dollars in quotes, such as "14.75"',
}


def expected(shape: Shape) -> str:
    """The values that a field accepts, for 'expected …'."""
    match shape:
        case WholeNumber(within=within):
            return "an integer" + bounds(within)
        case Flag():
            return "true or false"
        case Words():
            return "a string"
        case Choice(values=values):
            return choice(values)
        case Measured(measure=measure, words=words):
            return _MEASURES[measure] + (f", or {choice(words)}" if words else "")
        case ListOf():
            return "a list"
        case MapOf() | Object():
            return "a map"


def bounds(within: Within) -> str:
    """Minimum and maximum, with a leading blank."""
    match within:
        case Within(least=None, most=None):
            return ""
        case Within(least=least, most=None):
            return f" of at least {least}"
        case Within(least=None, most=most):
            return f" of at most {most}"
        case Within(least=least, most=most):
            return f" from {least} to {most}"


def how_many(within: Within, unit: str) -> str:
    """1 to 3 items; at least 1 item."""
    plural = unit[:-1] + "ies" if unit.endswith("y") else unit + "s"
    match within:
        case Within(least=least, most=None):
            return f"at least {least} {unit if least == 1 else plural}"
        case Within(least=None, most=most):
            return f"at most {most} {unit if most == 1 else plural}"
        case Within(least=least, most=most):
            return f"{least} to {most} {plural}"


def choice(values: tuple[str, ...]) -> str:
    """a, b or c."""
    *first, last = values
    return f"{', '.join(first)} or {last}" if first else last


def meant(error: str, known: Iterable[str]) -> str:
    """The known word most similar to the given one, if any. Ignores case; a prefix is enough."""
    if len(error) > LONGEST_WORD:
        return ""
    by_fold = {word.casefold(): word for word in sorted(known)}
    fold = error.casefold()
    if close := difflib.get_close_matches(fold, by_fold, n=1, cutoff=0.72):
        return by_fold[close[0]]
    beginnings = [word for word in by_fold if len(fold) >= 4 and (word.startswith(fold) or fold.startswith(word))]
    return by_fold[beginnings[0]] if len(beginnings) == 1 else ""


# Remedies for fields of earlier versions.
REPLACED_FIELDS = {
    "devicePlugin": 'write "allocation: plugin" if the value was true, or "allocation: agent" if it was false'
}


def did_you_mean(error: str, known: Iterable[str]) -> str:
    """The suggestion as a clause, or an empty string."""
    found = meant(error, known)
    return f'; did you mean "{found}"?' if found else ""


# --- Suggested corrections for unreadable values with a clear intention.

# Spellings of duration units, and their seconds.
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
_LONGEST = 80  # maximum length of a suggested value


def advice(shape: Shape, node: Node, path: Path) -> str:
    """The remedy for a value of the wrong type; empty if the intention is unclear."""
    match shape, node:
        case ((Object() | MapOf()), Sequence()):
            return _map_form(shape, node)
        case ListOf(), Mapping():
            return _list_form(plain(node))
        case _, Scalar():
            return _scalar_advice(shape, node, path)
    return ""


def measure_advice(shape: Measured, text: str) -> str:
    """Suggests Never for never, 15m for 15min, 40G for 40GB, 24h for 1d, 85% for 85."""
    if close := meant(text, shape.words):
        return f"write {close}"
    match shape.measure.__name__:
        case "Duration":
            return f"write {duration}" if (duration := _duration(text)) else ""
        case "Percent":
            return f"write {percent}%" if (percent := _percent(text)) else ""
        case "Quantity":
            shorter = text[:-1].replace(" ", "") if text.endswith(("B", "b")) else ""
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
    """Suggests 2 for two and 8 without quotes for "8"; for a percentage, 80 for "80%" and 85 for 0.85."""
    if isinstance(node.value, str) and node.text.lower() in _NUMBERS:
        return str(_NUMBERS.index(node.text.lower()))
    if isinstance(node.value, str) and re.fullmatch(r"[0-9]{1,9}", node.text):
        return f"{node.text} without quotes"
    return _percent(node.text) if str(path[-1]).endswith("Percent") else ""


def _percent(text: str) -> str:
    """The number of a percentage written as 80%, 80 or 0.8."""
    text = text.strip()
    if _SHARE.fullmatch(text):
        return str(int(Decimal(text) * 100)) if Decimal(text) else ""
    number = text.removesuffix("%").strip()
    return number if re.fullmatch(r"100|[0-9]{1,2}", number) else ""


def _duration(text: str) -> str:
    """Suggests 15m for 15min, 1h30m for "1 hour 30 minutes", 24h for 1d; empty if the text is not a duration."""
    seconds, at = Decimal(0), 0
    for part in _DURATION_PART.finditer(text):
        unit = next((unit for unit, words in _SECONDS.items() if words.fullmatch(part[2].lower())), None)
        if part.start() != at or unit is None:
            return ""
        seconds, at = seconds + Decimal(part[1]) * unit, part.end()
    milliseconds = int(seconds * 1000)
    return str(Duration(milliseconds)) if 0 < at == len(text) and milliseconds <= LONGEST_MILLISECONDS else ""


def _only_required(shape: Object, node: Scalar) -> str:
    """Suggests {name: p5.48xlarge} for p5.48xlarge if no other field is required."""
    required = [field for field in shape.fields if field.required]
    is_plain = re.fullmatch(r"[A-Za-z][\w.-]*", node.text)
    if len(required) != 1 or not isinstance(required[0].shape, Words) or not is_plain:
        return ""
    return f"{{{required[0].name}: {node.text}}}"


def _list_of(node: Scalar) -> str:
    """A list of one item, in quotes if YAML would not read the plain word as a string."""
    is_plain = re.fullmatch(r"[A-Za-z][\w./-]*", node.text)
    return f"[{node.text}]" if is_plain else f"[{json.dumps(node.text, ensure_ascii=False)}]"


def _map_form(shape: Object | MapOf, node: Sequence) -> str:
    """The items as one map if the map is short and complete; otherwise the first keys of the map."""
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
    """A value as YAML in one line."""
    match value:
        case dict():
            return f"{{{', '.join(f'{_flow(key)}: {_flow(each)}' for key, each in value.items())}}}"
        case list():
            return f"[{', '.join(map(_flow, value))}]"
        case str() if re.fullmatch(r"[A-Za-z][\w./-]*", value) and value.lower() not in {"true", "false", "null"}:
            return value
    return json.dumps(value, ensure_ascii=False)


# --- The codes of problems with their titles; docs/reference/problems.md shows an example of each.

CODES: tuple[tuple[str, str], ...] = (
    ("RC001", "The file is not YAML"),
    ("RC002", "A map has a key twice"),
    ("RC003", "The file is too large"),
    ("RC004", "The document is nested too deep"),
    ("RC005", "An alias is undefined, recursive, or expands to too much"),
    ("RC006", "A merge key is used"),
    ("RC007", "A key is not a string"),
    ("RC008", "A tag is used"),
    ("RC009", "YAML parsers read a word differently"),
    ("RC010", "A number is too large"),
    ("RC011", "A character can hide text from a reviewer"),
    ("RC101", "The document is not a policy object"),
    ("RC102", "The kind or its version is unknown"),
    ("RC103", "A value has the wrong type"),
    ("RC104", "A field is missing"),
    ("RC105", "A value is out of range"),
    ("RC106", "A value has the wrong form"),
    ("RC107", "A key is unknown"),
    ("RC108", "A list has an item twice"),
    ("RC109", "The object has no valid name"),
    ("RC110", "An object is declared twice"),
    ("RC111", "An overlay changes an object that base does not have"),
    ("RC201", "minSize is above maxSize"),
    ("RC202", "minUnutilizedGPUNodes or warmNodes is above maxSize"),
    ("RC203", "maxDrainParallelism is above maxScaleDownParallelism"),
    ("RC204", "computeUnit and resources name different resources"),
    ("RC205", "A cron schedule is invalid"),
    ("RC206", "A time zone does not exist"),
    ("RC207", "A budget sets only one of schedule and duration"),
    ("RC208", "An amount is implausible"),
    ("RC301", "A reference names no object"),
    ("RC302", "Two NodeProvisioners scale one pool"),
    ("RC303", "Two NodeProvisioners have the same order for the same pods"),
    ("RC304", "A drain threshold is at or above the NodeProvisioner's utilization target"),
    ("RC305", "The pool's limits are below the NodeProvisioner's maxSize"),
    ("RC306", "A NodePool lets Karpenter consolidate although a policy removes its nodes"),
    ("RC307", "An instance type does not have the pool's GPUs"),
    ("RC308", "Two DrainPolicies name one pool"),
    ("RC309", "Two PressurePolicies name one pool"),
    ("RC310", "A policy has no effect"),
    ("RC311", "More pools overlap than Karpenter has weights"),
    ("RC312", "An instance type is probably misspelled"),
    ("RC313", "The capacity of an instance type is unknown"),
    ("RC314", "A DrainPolicy covers nodes with one GPU"),
    ("RC315", "Karpenter does not keep the order of capacity types"),
    ("RC316", "A delay is below the minimum"),
    ("RC317", "Karpenter does not keep the order of a pool without taints"),
    ("RC318", "A resource does not exist"),
    ("RC319", "A resource name is probably misspelled"),
    ("RC320", "A taint is set by another component"),
    ("RC401", "A template has a syntax error"),
    ("RC402", "A template uses an undefined value"),
    ("RC403", "A template uses a forbidden operation"),
    ("RC404", "A template exceeds a limit on time, memory or size"),
    ("RC405", "A template does not exist"),
    ("RC406", "A template fails to render"),
    ("RC411", "A template renders an object that is not allowed"),
    ("RC412", "A NodePool violates Karpenter's schema"),
    ("RC413", "A NodePool violates a validation rule of Karpenter"),
    ("RC414", "Manifests have wrong or conflicting names"),
    ("RC415", "A template renders no valid smart pod"),
    ("RC416", "A smart pod sets a field that is not allowed"),
    ("RC501", "A path cannot be read"),
    ("RC502", "A link leads outside the policy directory"),
    ("RC503", "A policy path is not a regular file"),
    ("RC504", "A bundle exceeds a size limit"),
    ("RC505", "A name cannot be shown"),
    ("RC506", "The files keep changing"),
    ("RC507", "Two templates have the same name"),
    ("RC508", "No valid revision has been read yet"),
    ("RC509", "Reading was interrupted"),
    ("RC511", "A repository address is refused"),
    ("RC512", "A revision is refused or does not exist"),
    ("RC513", "The repository does not contain the content of a file"),
    ("RC514", "Git was terminated before it finished"),
    ("RC515", "Git cannot read the repository"),
    ("RC521", "A bundle of custom resources is incomplete"),
    ("RC522", "Several complete bundles of custom resources exist"),
    ("RC523", "Custom resources cannot be read"),
)
