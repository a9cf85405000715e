"""Which names are policies, which are templates, and which no message could show as they are."""

import unicodedata

POLICY_SUFFIXES = (".yaml", ".yml", ".json")
# Kustomize's own files lie beside the objects that they list, and hold none.
KUSTOMIZATIONS = frozenset({"kustomization.yaml", "kustomization.yml"})
TEMPLATE_SUFFIX = ".j2"
TEMPLATES_FOLDER = "templates"

# Git knows no limit, disks do.
LONGEST_NAME = 255

# They reorder what a terminal shows, so that a path reads as another one.
REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def is_policy(name: str) -> bool:
    return name not in KUSTOMIZATIONS and name.lower().endswith(POLICY_SUFFIXES)


def is_template(name: str) -> bool:
    return name.lower().endswith(TEMPLATE_SUFFIX)


def is_hidden(name: str) -> bool:
    return name.startswith(".")


def name_fault(name: str) -> str:
    """What keeps a name from being shown; empty when nothing does."""
    if len(name) > LONGEST_NAME:
        return f"is longer than {LONGEST_NAME} letters"
    if any(unicodedata.category(letter) == "Cs" for letter in name):
        return "is not UTF-8"
    if any(_is_control(letter) for letter in name):
        return "contains a control character"
    return ""


def shown(text: str) -> str:
    r"""The text with control characters and undecodable bytes written as \x1b: one line, whatever it held."""
    return "".join(_escaped(letter) if _is_control(letter) else letter for letter in text)


def _is_control(letter: str) -> bool:
    return unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"} or letter in REORDERING


def _escaped(letter: str) -> str:
    number = ord(letter)
    if 0xDC80 <= number <= 0xDCFF:  # how Python carries a byte that it could not decode
        number -= 0xDC00
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
