"""How the texts that were read become a Bundle: sorted, one template a name, and named by what they hold."""

import hashlib
from collections.abc import Sequence

from reconciler.model.bundle import Bundle, Text
from reconciler.model.problem import Problem
from reconciler.sources.fault import SourceFault
from reconciler.sources.walk import BundleFile

Read = tuple[BundleFile, bytes]


def bundled(revision: str, read: Sequence[Read], problems: Sequence[Problem]) -> Bundle:
    """The bundle of a revision; without a name for it, its content names it."""
    policies = sorted((Text(file.path, content) for file, content in read if file.role == "policy"), key=_path)
    templates, doubles = _one_a_name([(file, content) for file, content in read if file.role == "template"])
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
    for file, content in sorted(read, key=lambda pair: (pair[0].path, pair[0].file)):
        known, text = first.setdefault(file.path, (file, content))
        if text != content:
            sentence = f"is the template {file.path}, and so is {known.file}, which differs"
            problems.append(SourceFault.TWO_OF_ONE_NAME.problem(file.file, sentence, "rename one of them"))
    texts = [Text(path, content, bundle_file.file) for path, (bundle_file, content) in sorted(first.items())]
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
