"""A picture on a page: drawn already, with words that say the same to whoever can't see it."""

import msgspec


class Picture(msgspec.Struct, frozen=True):
    """Its SVG is put into the page as it is: only a drawing of ours may come here."""

    name: str  # a word, for its file
    heading: str
    words: str
    svg: str

    @property
    def alone(self) -> str:
        """A file of its own: dark on white, since no page gives it colours."""
        opening, rest = self.svg.split(">", 1)
        white = '<rect width="100%" height="100%" fill="#ffffff"/>'
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{opening} color="#1f2328">{white}{rest}\n'
