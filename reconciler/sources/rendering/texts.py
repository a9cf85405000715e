"""The templates of one call by name, and problems that point into them."""

import re
from collections.abc import Sequence

import msgspec

from reconciler.model.bundle import Text
from reconciler.model.problem import Problem
from reconciler.policy.words import did_you_mean

FOLDER = "templates/"

# Names stand in line marks, and in sentences.
_NAME = re.compile("[^\x00-\x1f\x7f-\x9f\ue000\ue001\u2028\u2029]+")


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a template, as the child says it; the name is the template's, a line of 0 all of it."""

    code: str
    name: str
    sentence: str
    line: int = 0
    word: str = ""  # what to underline
    remedy: str = ""


class TemplateTexts:
    """Those that can be rendered, and what is wrong with the others."""

    def __init__(self, templates: Sequence[Text]) -> None:
        self.texts: dict[str, str] = {}
        self.broken: dict[str, tuple[int, str]] = {}
        for template in templates:
            if not _NAME.fullmatch(template.path):
                continue
            try:
                self.texts[template.path] = template.content.decode("utf-8-sig")
            except UnicodeDecodeError as error:
                line = template.content[: error.start].count(b"\n") + 1
                self.broken[template.path] = line, f"byte {error.start + 1} of the file is not UTF-8"

    def lacks(self, name: str) -> Problem | None:
        """What to say where a template is asked for that is not there."""
        if name in self.texts or name in self.broken:
            return None
        if name.startswith("/") or ".." in name.split("/"):
            text = f'"{name}" leads out of the folder of templates'
            return self.problem(Fault("RC403", name, text, remedy="name a template of the bundle"))
        text = f'there is no template "{name}"{did_you_mean(name, [*self.texts, *self.broken])}'
        return self.problem(Fault("RC405", name, text, remedy=f"add {FOLDER}{name}, or name one that is there"))

    def problem(self, fault: Fault) -> Problem:
        """The fault with its source line, and with a column where its word stands there."""
        lines = self.texts.get(fault.name, "").splitlines()
        excerpt = lines[fault.line - 1] if 0 < fault.line <= len(lines) else ""
        blanks = len(excerpt) - len(excerpt.lstrip())
        at = excerpt.find(fault.word) if fault.word else -1
        return Problem(
            file=FOLDER + fault.name,
            line=fault.line,
            column=at + 1 if at >= 0 else blanks + 1 if excerpt else 0,
            code=fault.code,
            sentence=fault.sentence,
            remedy=fault.remedy,
            width=len(fault.word) if at >= 0 else max(1, len(excerpt.strip())),
            excerpt=excerpt,
        )
