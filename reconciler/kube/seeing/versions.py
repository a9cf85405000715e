"""resourceVersions of one cluster, compared: they count its writes, whatever the kind."""


def is_newer(version: str, than: str) -> bool:
    """Whether it came later. What can't be compared is taken for news."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return True


def is_older(version: str, than: str) -> bool:
    """Whether it was true before."""
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)
