"""Rules in words: without the figures of any object, or, for the API server to fill in, with those of one."""

import re

from reconciler.policy.kind import ValidationRule
from reconciler.policy.shape import Choice, Flag, Measured, Object, WholeNumber, Words

_FIGURE = re.compile(r"\{([a-z_]+)\}")


def without_figures(rule: ValidationRule) -> str:
    """What must hold, of any object."""
    return _FIGURE.sub("", rule.sentence).replace("  ", " ").replace(" ,", ",").strip()


def refusal(rule: ValidationRule) -> str:
    """The whole message to somebody whose object breaks it."""
    return f"{without_figures(rule)} ({rule.code}): {rule.remedy}"


def refusal_with_figures(rule: ValidationRule, shape: Object) -> str | None:
    """The same as an expression in CEL that names the object's own figures; None where the sentence has none."""
    named = _FIGURE.findall(rule.sentence)
    by_attribute = {field.attribute: field for field in shape.fields}
    for attribute in named:
        if not isinstance(by_attribute[attribute].shape, WholeNumber | Flag | Words | Choice | Measured):
            raise TypeError(f"{rule.code} names {attribute}, which can't be written as one word")
    # Texts put together by + may grow without bound in the API server's reckoning of costs, those by format may not.
    form = _FIGURE.sub("%s", f"{rule.sentence} ({rule.code}): {rule.remedy}".replace("%", "%%"))
    figures = ", ".join(f"self.{by_attribute[attribute].name}" for attribute in named)
    return f"{quoted(form)}.format([{figures}])" if named else None


def quoted(text: str) -> str:
    """A text in CEL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
