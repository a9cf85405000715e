"""Decisions that hang on the order of a set, a hash or a float, and such as don't."""

from tests.tidy.plant import Plant
from tests.tidy.rules.determinism import (
    pure_folders_keep_no_hash,
    sets_are_sorted_before_they_are_walked,
    thresholds_are_integers,
)

WALKED = '''"""A planted module."""

for name in {"a", "b"}:
    pass
for name in set(names):
    pass
pairs = [(name, 1) for name in frozenset(names)]
names = tuple({name for name in names})
'''

SORTED = '''"""A planted module."""

for name in sorted({"a", "b"}):
    pass
pairs = sorted(name for name in set(names))
known = {name for name in set(names)}
found = any(name == "a" for name in {"a", "b"})
'''

HASHED = '''"""A planted module."""

seed = hash(name)


class Key:
    def __hash__(self) -> int:
        return hash(self.name)
'''

FLOATS = '''"""A planted module."""

too_much = used > 0.9 * total
too_little = -1.5 <= used < 3
'''

INTEGERS = '''"""A planted module."""

too_much = 10 * used > 9 * total
shown = used / 1000.0
near = used == rounded(0.5)
'''

PLANTS = (
    Plant(
        sets_are_sorted_before_they_are_walked,
        "loops, comprehensions and lists over a set are found",
        {"reconciler/fleet/x.py": WALKED, "reconciler/serve/x.py": WALKED},
        (
            "reconciler/fleet/x.py:3: A set is walked",
            "reconciler/fleet/x.py:5: A set is walked",
            "reconciler/fleet/x.py:7: A set is walked",
            "reconciler/fleet/x.py:8: A set is walked",
        ),
    ),
    Plant(
        sets_are_sorted_before_they_are_walked,
        "a set may be walked where its order cannot show",
        {"reconciler/fleet/x.py": SORTED},
    ),
    Plant(
        pure_folders_keep_no_hash,
        "a hash that leaves its object is found",
        {"reconciler/report/x.py": HASHED},
        ("reconciler/report/x.py:3: hash() of the same text differs",),
    ),
    Plant(
        pure_folders_keep_no_hash, "a digest is no hash", {"reconciler/report/x.py": HASHED.replace("= hash", "= sha")}
    ),
    Plant(
        thresholds_are_integers,
        "floats on either side of a comparison are found",
        {"reconciler/plan/x.py": FLOATS, "reconciler/report/x.py": FLOATS},
        ("reconciler/plan/x.py:3: A threshold is a float", "reconciler/plan/x.py:4: A threshold is a float"),
    ),
    Plant(
        thresholds_are_integers,
        "floats that decide nothing may stay",
        {"reconciler/plan/x.py": INTEGERS},
    ),
)
