"""Programs that read prose, and such as read facts."""

from tests.tidy.plant import Plant
from tests.tidy.rules.reasons import programs_read_facts_and_no_prose

_IMPORT = "from reconciler.report.sentences import sentence, words_of\n"

PLANTS = (
    Plant(
        programs_read_facts_and_no_prose,
        "sentences made and read, facts read by name and codes compared are found",
        {
            "reconciler/plan/drain/a.py": f"{_IMPORT}told = list(map(sentence, reasons))\n",
            "reconciler/plan/explain/a.py": "from reconciler.report import sentences as said\nx = said.sentence(y)\n",
            "reconciler/plan/status/a.py": "from reconciler.report.sentences import fact_words\nx = fact_words(1)\n",
            "reconciler/fleet/a.py": "from reconciler.plan.capacity.words import obstacle_words as say\n",
            "reconciler/controller/a.py": "import reconciler.report.sentences\n",
            "reconciler/report/b.py": 'pod = reason.fact("pod")\n',
            "reconciler/report/c.py": f'{_IMPORT}x = sentence(reason) == "x"\ny = told.sentence.startswith("x")\n',
            "reconciler/loop/d.py": 'a = decision.reason.code == "x"\nb = reason.code in {"x"}\n',
            "reconciler/plan/status/e.py": 'x = "for a" in each.sentence\n',
        },
        (
            "reconciler/controller/a.py:1: A sentence is made away from the edge",
            "reconciler/fleet/a.py:1: A sentence is made away from the edge",
            "reconciler/loop/d.py:1: The code of a reason is compared",
            "reconciler/loop/d.py:2: The code of a reason is compared",
            "reconciler/plan/drain/a.py:1: A sentence is made away from the edge",
            "reconciler/plan/drain/a.py:1: A sentence is made away from the edge",
            "reconciler/plan/explain/a.py:1: A sentence is made away from the edge",
            "reconciler/plan/status/a.py:1: A sentence is made away from the edge",
            "reconciler/plan/status/e.py:1: A sentence is compared",
            "reconciler/report/b.py:1: A fact is read by a name",
            "reconciler/report/c.py:2: A sentence is compared",
            "reconciler/report/c.py:3: A sentence is read",
        ),
    ),
    Plant(
        programs_read_facts_and_no_prose,
        "sentences may be made at the edge, and facts and codes of other things be read",
        {
            "reconciler/report/a.py": f"{_IMPORT}told = sentence(reason)\n",
            "reconciler/report/explain/b.py": f"{_IMPORT}told = words_of(reason)\n",
            "reconciler/cli/demo.py": f"{_IMPORT}told = words_of(reason)\n",
            "reconciler/plan/drain/words.py": "from reconciler.plan.capacity.words import obstacle_words\n",
            "reconciler/kube/c.py": "x = answer.code == 404\ny = refusals.sentence(each)\n",
            "reconciler/plan/d.py": "x = isinstance(reason.facts, Frozen)\ny = Counter(reason.code)\n",
            "reconciler/plan/e.py": "from reconciler.report.sentences import REASONS\n",
            "tests/f.py": 'x = reason.code == "Frozen"\n',
        },
    ),
)
