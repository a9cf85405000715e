"""Programs that read prose, and such as read facts."""

from tests.tidy.plant import Plant
from tests.tidy.rules.reasons import LISTED, programs_read_facts_and_no_prose

_IMPORT = "from reconciler.report.sentences import sentence, words_of\n"

PLANTS = (
    Plant(
        programs_read_facts_and_no_prose,
        "sentences made and read, facts read by name and codes compared are found",
        {
            "reconciler/plan/drain/a.py": f"{_IMPORT}told = sentence(reason)\nmore = words_of(reason)\n",
            "reconciler/report/b.py": 'pod = reason.fact("pod")\n',
            "reconciler/report/c.py": f'{_IMPORT}x = sentence(reason) == "x"\ny = told.sentence.startswith("x")\n',
            "reconciler/loop/d.py": 'a = decision.reason.code == "x"\nb = reason.code in {"x"}\n',
            "reconciler/plan/status/e.py": 'x = "for a" in each.sentence\n',
            LISTED: '[sentences]\n"reconciler/gone.py" = 2\n',
        },
        (
            "reconciler/loop/d.py:1: The code of a reason is compared",
            "reconciler/loop/d.py:2: The code of a reason is compared",
            "reconciler/plan/drain/a.py:2: A sentence is made away from the edge",
            "reconciler/plan/drain/a.py:3: A sentence is made away from the edge",
            "reconciler/plan/status/e.py:1: A sentence is compared",
            "reconciler/report/b.py:1: A fact is read by a name",
            "reconciler/report/c.py:2: A sentence is compared",
            "reconciler/report/c.py:3: A sentence is read",
            f"{LISTED}:2: reconciler/gone.py has fewer sentences",
        ),
    ),
    Plant(
        programs_read_facts_and_no_prose,
        "a file that has more than is listed is found, and one that has fewer",
        {
            "reconciler/plan/a.py": 'a = reason.fact("pod")\nb = reason.fact("node")\n',
            "reconciler/plan/b.py": 'a = reason.fact("pod")\n',
            LISTED: '[facts]\n"reconciler/plan/a.py" = 1\n"reconciler/plan/b.py" = 2\n',
        },
        (
            "reconciler/plan/a.py:1: A fact is read by a name",
            "reconciler/plan/a.py:2: A fact is read by a name",
            f"{LISTED}:3: reconciler/plan/b.py has fewer facts than are listed. Remedy: lower the figure to 1.",
        ),
    ),
    Plant(
        programs_read_facts_and_no_prose,
        "sentences may be made at the edge, and facts and codes of other things be read",
        {
            "reconciler/report/a.py": f"{_IMPORT}told = sentence(reason)\n",
            "reconciler/report/explain/b.py": f"{_IMPORT}told = words_of(reason)\n",
            "reconciler/kube/c.py": "x = answer.code == 404\ny = refusals.sentence(each)\n",
            "reconciler/plan/d.py": "x = isinstance(reason.facts, Frozen)\ny = Counter(reason.code)\n",
            "reconciler/plan/e.py": 'x = reason.fact("pod")\n',
            "tests/f.py": 'x = reason.code == "Frozen"\n',
            LISTED: '[facts]\n"reconciler/plan/e.py" = 1\n',
        },
    ),
)
