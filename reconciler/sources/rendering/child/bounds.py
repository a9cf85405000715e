"""What is raised where a template takes more than it may."""


class TooMuch(Exception):
    """More memory, numbers or output than a rendering may have; the message says of what."""


class OutOfTime(BaseException):
    """The time of one rendering is used up.

    No Exception: Jinja swallows those while it compiles, and the template would go on.
    """
