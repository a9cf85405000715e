"""Problems for the tests of reports: the one of the design, and any that hypothesis can think of."""

from hypothesis import strategies as some

from reconciler.model.problem import Problem
from reconciler.report.checked import CheckReport

L4 = "policies/base/l4-inference.yaml"
WRONG_TYPE = Problem(
    file=L4,
    line=14,
    column=24,
    code="RC103",
    sentence='spec.maxDrainParallelism: expected an integer of at least 1, got "two"',
    remedy="write 2",
    width=3,
    excerpt="  maxDrainParallelism: two",
)
UNKNOWN_KEY = Problem(
    file=L4,
    line=18,
    column=3,
    code="RC107",
    sentence='unknown key "utilisationThreshold"; did you mean "utilizationThresholdPercent"?',
)
WHOLE_FILE = Problem(
    file="a b.yaml", line=0, column=0, code="RC101", sentence="is not UTF-8", remedy="save it as UTF-8"
)
# The order is not that of the reports.
MISTAKES = CheckReport((UNKNOWN_KEY, WRONG_TYPE), files=12, tool_version="0.9.2", titles=(("RC103", "A wrong type"),))
FINE = CheckReport((), files=12, tool_version="0.9.2")

# What ends a line, steers a terminal, hides, or means something to one of the formats.
AWKWARD = (
    "\x00\t\n\r\x0b\x1b\x1c\x7f\x85\x9b\xa0\xad\u0301\u200b\u2028\u202e\ufeff\ufffe\ud83d\ude00%:,;=[](){}<>&\"'\\漢"
)
texts = some.text(some.one_of(some.sampled_from(AWKWARD), some.characters()), max_size=40)
positions = some.integers(-2, 60)
problems = some.builds(
    Problem,
    file=texts,
    line=positions,
    column=positions,
    code=texts,
    sentence=texts,
    remedy=texts,
    width=positions,
    excerpt=texts,
)
documents = some.builds(
    CheckReport,
    problems=some.lists(problems, max_size=4).map(tuple),
    files=some.integers(0, 9),
    tool_version=texts,
    titles=some.lists(some.tuples(texts, texts), max_size=2).map(tuple),
)


def checked(*problems: Problem) -> CheckReport:
    """A document of these problems."""
    return CheckReport(problems, files=max(1, len({problem.file for problem in problems})), tool_version="0.9.2")
