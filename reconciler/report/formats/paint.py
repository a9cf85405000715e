"""Colours of a terminal, or none."""

import msgspec

from reconciler.report.blocks import Tone

_CODES: dict[Tone, int] = {"strong": 1, "dim": 2, "bad": 31, "good": 32, "warn": 33}


class Paint(msgspec.Struct, frozen=True):
    """What puts colours around a text where colours are wanted."""

    color: bool

    def bold(self, text: str) -> str:
        return self._painted(text, 1)

    def dim(self, text: str) -> str:
        return self._painted(text, 2)

    def red(self, text: str) -> str:
        return self._painted(text, 31)

    def toned(self, text: str, tone: Tone) -> str:
        return self._painted(text, _CODES[tone]) if tone in _CODES else text

    def _painted(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text
