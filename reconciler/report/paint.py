"""Colours of a terminal, or none."""

import msgspec


class Paint(msgspec.Struct, frozen=True):
    """What puts colours around a text where colours are wanted."""

    color: bool

    def bold(self, text: str) -> str:
        return self._painted(text, 1)

    def dim(self, text: str) -> str:
        return self._painted(text, 2)

    def red(self, text: str) -> str:
        return self._painted(text, 31)

    def _painted(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text
