"""docs/reference/limits.md says what the modules say."""

import re

from reconciler.fleet.topology.breadth import MOST_PAIRS
from reconciler.model.cluster import bounds
from reconciler.plan.nodes.eviction import MOST_COMPARED
from reconciler.policy import limits
from reconciler.policy.yaml import yaml_text
from reconciler.sources.bounds import SourceBounds
from tests.lab.places import REPOSITORY

PAGE = (REPOSITORY / "docs/reference/limits.md").read_text()


def test_the_page_has_each_limit_once_in_its_order() -> None:
    told = [int(each.replace(",", "")) for each in re.findall(r"^\|[^|]*\| ([\d,]+)(?: MiB)? \|", PAGE, re.MULTILINE)]
    said = [value for name, value in vars(bounds).items() if name.startswith("MOST_")]
    sources = SourceBounds()
    said += [MOST_COMPARED, MOST_PAIRS]
    said += [sources.files, sources.file_bytes >> 20, sources.total_bytes >> 20, sources.depth]
    said += [yaml_text.MAX_DEPTH, yaml_text.MAX_NODES]
    said += [limits.MOST_MERGED, limits.MOST_PROBLEMS, limits.LONGEST_SENTENCE, limits.LONGEST_EXCERPT]
    assert told == said
