"""The tree names no folder of somebody's machine and no package registry: it must build anywhere."""

import re

from tests.tidy.finding import Finding
from tests.tidy.tree import Tree

# Each is put together from pieces, so that this file does not break the rule it states.
FOLDERS = ("wor" + "k/", "roo" + "t/", "hom" + "e/[^/\\s]+/", "Use" + "rs/")
REGISTRIES = (
    "pypi" + ".org",
    "files.pythonho" + "sted.org",
    "proxy.go" + "lang.org",
    "registry.n" + "pmjs.org",
    "crates" + ".io",
    "repo1.ma" + "ven.org",
    "repo.ma" + "ven.apache.org",
    "deb.de" + "bian.org",
)

# After a word, a slash is within some other path, or a URL.
MACHINE_PATH = re.compile(r"(?<![\w.})\]-])/(?:" + "|".join(FOLDERS) + ")")
REGISTRY = re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, REGISTRIES)) + r")(?![\w-])")


def no_file_names_a_machine(tree: Tree) -> list[Finding]:
    """Absolute paths of one machine, and hosts that packages come from, in any text file."""
    found = []
    for path in tree.paths:
        for number, line in tree.lines(path):
            if match := MACHINE_PATH.search(line):
                remedy = "start from the root of the repository, or from a setting"
                found.append(Finding(path, number, f"{match[0]} is a folder of one machine", remedy))
            if match := REGISTRY.search(line):
                remedy = "leave the registry to the settings of the machine (pip.conf, GOPROXY, a mirror)"
                found.append(Finding(path, number, f"{match[0]} is a package registry", remedy))
    return found
