"""Objects that are written otherwise than usual, set right: nulls for what is empty, numbers for quantities."""

# Fields that map a resource to an amount.
_AMOUNTS = frozenset({"requests", "limits", "capacity", "allocatable", "overhead", "allocatedResources"})
_COUNT = "count"  # no resource: how many volumes are allocatable to a driver, which is a number


def without_nulls(value: object) -> object:
    """To Go a null, an empty list and nothing are the same."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value if each is not None]
    return value


def loosened(value: object) -> object:
    """Without nulls, and every amount as text."""
    return _amounts_as_text(without_nulls(value))


def _amounts_as_text(value: object) -> object:
    if isinstance(value, list):
        return [_amounts_as_text(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: {name: amount if name == _COUNT else _text(amount) for name, amount in each.items()}
        if key in _AMOUNTS and isinstance(each, dict)
        else _amounts_as_text(each)
        for key, each in value.items()
    }


def _text(amount: object) -> object:
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    return str(amount) if is_number else amount
