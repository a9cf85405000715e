"""Pure folders that touch the world, and pure ones."""

from tests.tidy.plant import Plant
from tests.tidy.rules.purity import (
    pure_folders_import_nothing_of_the_world,
    pure_folders_reach_for_nothing_of_the_world,
)

IMPORTING = '''"""A planted module."""

import socket
import urllib.request as asking
from datetime import datetime
from os.path import join
from uuid import UUID, uuid4, uuid5


def late() -> None:
    from concurrent import futures
    import numpy.random
'''

REACHING = '''"""A planted module."""

import datetime as calendar
import uuid
from datetime import date, datetime as moment


def now() -> object:
    print(uuid.uuid5, uuid.uuid4())
    return calendar.datetime.now(), moment.utcnow, date.today()


module = __import__("socket")
text = eval("open")("file").read() or open("file").read()
'''

PURE = '''"""A planted module."""

from datetime import datetime, timedelta
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from .time import now
from .random import choice


def later(moment: datetime) -> object:
    return moment + timedelta(seconds=1), now(moment), moment.now, quote(moment.open()), uuid5(NAMESPACE_URL, "x")
'''

PLANTS = (
    Plant(
        pure_folders_import_nothing_of_the_world,
        "imports are found under any spelling, inside functions too",
        {"reconciler/model/x.py": IMPORTING, "reconciler/kube/x.py": IMPORTING},
        (
            "reconciler/model/x.py:3: A pure folder touches the network: it imports socket. Remedy: let kube/",
            "reconciler/model/x.py:4: A pure folder touches the network: it imports urllib.request.",
            "reconciler/model/x.py:6: A pure folder touches files: it imports os.path.join.",
            "reconciler/model/x.py:7: A pure folder touches chance: it imports uuid.uuid4.",
            "reconciler/model/x.py:11: A pure folder touches threads and processes: it imports concurrent.futures.",
            "reconciler/model/x.py:12: A pure folder touches chance: it imports numpy.random.",
        ),
    ),
    Plant(
        pure_folders_import_nothing_of_the_world,
        "our own modules and harmless parts of the library are not taken for their namesakes",
        {"reconciler/plan/gpu/x.py": PURE},
    ),
    Plant(
        pure_folders_reach_for_nothing_of_the_world,
        "the clock is found under any alias, called or not, and builtins that open doors",
        {"reconciler/plan/gpu/x.py": REACHING, "reconciler/cli/x.py": REACHING},
        (
            "reconciler/plan/gpu/x.py:9: A pure folder touches chance: it reaches for uuid.uuid4.",
            "reconciler/plan/gpu/x.py:9: A pure folder touches the terminal or a log: it reaches for print().",
            "reconciler/plan/gpu/x.py:10: A pure folder touches the clock: it reaches for datetime.date.today.",
            (
                "reconciler/plan/gpu/x.py:10: A pure folder touches the clock: it reaches for datetime.datetime.now. "
                "Remedy: take `now: Instant` from inputs."
            ),
            "reconciler/plan/gpu/x.py:10: A pure folder touches the clock: it reaches for datetime.datetime.utcnow.",
            "reconciler/plan/gpu/x.py:13: A pure folder touches the interpreter: it reaches for __import__().",
            "reconciler/plan/gpu/x.py:14: A pure folder touches files: it reaches for open().",
            "reconciler/plan/gpu/x.py:14: A pure folder touches the interpreter: it reaches for eval().",
        ),
    ),
    Plant(
        pure_folders_reach_for_nothing_of_the_world,
        "methods that share a name with a builtin are their own",
        {"reconciler/plan/gpu/x.py": PURE},
    ),
)
