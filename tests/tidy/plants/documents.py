"""Documents that point nowhere, texts that name a machine, and such as are in order."""

from tests.tidy.plant import Plant
from tests.tidy.rules.documents import links_lead_somewhere, make_targets_in_documents_exist, paths_in_documents_exist
from tests.tidy.rules.machine_paths import FOLDERS, REGISTRIES, no_file_names_a_machine

BROKEN = """# A title

Go [there](gone.md), or
[here](#no-title), ![or](/docs/gone.png) [or][ref], <a href="gone.html">or</a>.

[ref]: ../README.md#the-end
"""

SOUND = """# `plan` *twice*, again

## Same

## Same

<a id="mark"></a>

[a](#plan-twice-again) [b](#same-1) [c](#mark) [d](../README.md#the-start) [e](/docs) [f](https://x.example/gone)
`[not](a-link.md)` [g](a%20b.md)

```
[nor](this.md)
```
"""

NAMED = "# The start\n\n`tests/gone.py`, `docs/a.md:3` and\n`deploy/gone/`, `policies/POOL.yaml` `docs/*.md` `x/y`\n"

MADE = "Run `make test`:\n\n```sh\n$ make tset  # make sure\nmake -j2 test V=1 all\n```\n"

MACHINE = f"see /{FOLDERS[0]}main and '/{FOLDERS[3]}x'\nindex = https://{REGISTRIES[0]}/simple\n/{'hom' + 'e/me/'}x\n"

HARMLESS = f"https://x.example/a/{FOLDERS[0]}b tests/{FOLDERS[0]}x /{FOLDERS[0][:-1]}shop not-{REGISTRIES[0]}\n"

PLANTS = (
    Plant(
        links_lead_somewhere,
        "files, images and headings that are not there are found",
        {"README.md": "# The start\n", "docs/a.md": BROKEN},
        (
            "docs/a.md:3: The link gone.md leads to docs/gone.md, which does not exist",
            "docs/a.md:4: The link #no-title leads to a heading that docs/a.md does not have",
            "docs/a.md:4: The link ../README.md#the-end leads to a heading that README.md does not have",
            "docs/a.md:4: The link /docs/gone.png leads to docs/gone.png",
            "docs/a.md:4: The link gone.html leads to docs/gone.html",
        ),
    ),
    Plant(
        links_lead_somewhere,
        "anchors are those that GitHub makes",
        {"README.md": "# The start\n", "docs/a.md": SOUND, "docs/a b.md": ""},
    ),
    Plant(
        paths_in_documents_exist,
        "paths in backticks that are not there are found",
        {"README.md": NAMED, "docs/a.md": ""},
        ("README.md:3: There is no tests/gone.py", "README.md:4: There is no deploy/gone"),
    ),
    Plant(
        paths_in_documents_exist,
        "what git ignores may be absent, and a change log looks back",
        {
            ".gitignore": "tests/results/\n",
            "README.md": "`tests/results/x.json` `docs/`",
            "docs/a.md": "",
            "CHANGELOG.md": NAMED,
        },
    ),
    Plant(
        make_targets_in_documents_exist,
        "targets that are not there are found",
        {"README.md": MADE, "docs/a.md": MADE, "Makefile": "test: x\n\ttrue\n"},
        ("README.md:4: The Makefile has no target tset", "README.md:5: The Makefile has no target all"),
    ),
    Plant(
        make_targets_in_documents_exist,
        "targets that share a line are all there",
        {"README.md": MADE, "Makefile": "tset all test: x\n\ttrue\n"},
    ),
    Plant(
        no_file_names_a_machine,
        "folders of a machine and registries are found in any text",
        {"any.lock": MACHINE},
        (
            f"any.lock:1: /{FOLDERS[0]} is a folder of one machine. Remedy: start from the root",
            f"any.lock:2: {REGISTRIES[0]} is a package registry. Remedy: leave the registry to the settings",
            "any.lock:3: /hom" + "e/me/ is a folder of one machine",
        ),
    ),
    Plant(no_file_names_a_machine, "parts of other paths and hosts are none of them", {"x.md": HARMLESS}),
)
