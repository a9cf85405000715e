"""How the texts that were read become a Bundle: sorted, one template a name, and named by what they hold."""

import hashlib
from collections.abc import Sequence

from reconciler.model.bundle import Bundle, Text
from reconciler.model.problem import Problem
from reconciler.sources.fault import Fault
from reconciler.sources.walk import Found

Read = tuple[Found, bytes]


def bundled(revision: str, read: Sequence[Read], problems: Sequence[Problem]) -> Bundle:
    """The bundle of a revision; without a name for it, its content names it."""
    policies = sorted((Text(found.path, content) for found, content in read if found.role == "policy"), key=_path)
    templates, doubles = _one_a_name([(found, content) for found, content in read if found.role == "template"])
    return Bundle(
        revision or f"dir:{_digest(policies, templates)}",
        tuple(policies),
        tuple(templates),
        tuple(sorted({*problems, *doubles})),
    )


def _one_a_name(read: Sequence[Read]) -> tuple[list[Text], list[Problem]]:
    """Templates of one name are one where they say the same; else nobody could tell which is meant."""
    first: dict[str, Read] = {}
    problems = []
    for found, content in sorted(read, key=lambda pair: (pair[0].path, pair[0].file)):
        known, text = first.setdefault(found.path, (found, content))
        if text != content:
            sentence = f"is the template {found.path}, and so is {known.file}, which differs"
            problems.append(Fault.TWO_OF_ONE_NAME.problem(found.file, sentence, "rename one of them"))
    texts = [Text(path, content, found.file) for path, (found, content) in sorted(first.items())]
    return texts, problems


def _digest(policies: Sequence[Text], templates: Sequence[Text]) -> str:
    digest = hashlib.sha256()
    for role, texts in (("policy", policies), ("template", templates)):
        for text in texts:
            # Lengths in front: no two lists of texts come to the same bytes.
            path = text.path.encode("utf-8", "surrogateescape")
            digest.update(f"{role} {len(path)} {len(text.content)}\n".encode() + path + text.content)
    return digest.hexdigest()


def _path(text: Text) -> str:
    return text.path
