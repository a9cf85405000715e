"""docs/reference/limits.md says what the modules say."""

import re

from reconciler.fleet.topology.terms import MOST_PAIRS
from reconciler.model.cluster import bounds
from reconciler.plan.nodes.eviction import MOST_COMPARED
from reconciler.policy import tree, yaml
from reconciler.sources.walk import SourceBounds
from tests.lab.places import REPOSITORY

PAGE = (REPOSITORY / "docs/reference/limits.md").read_text()


def test_the_page_has_each_limit_once_in_its_order() -> None:
    told = [int(each.replace(",", "")) for each in re.findall(r"^\|[^|]*\| ([\d,]+)(?: MiB)? \|", PAGE, re.MULTILINE)]
    said = [value for name, value in vars(bounds).items() if name.startswith("MOST_")]
    sources = SourceBounds()
    said += [MOST_COMPARED, MOST_PAIRS]
    said += [sources.files, sources.file_bytes >> 20, sources.total_bytes >> 20, sources.depth]
    said += [yaml.MAX_DEPTH, yaml.MAX_NODES]
    said += [tree.MOST_MERGED, tree.MOST_PROBLEMS, tree.LONGEST_SENTENCE, tree.LONGEST_EXCERPT]
    assert told == said
