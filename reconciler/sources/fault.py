"""The faults that reading policies can meet: a code, a title, and how a Problem is made of each."""

from enum import Enum

from reconciler.model.problem import Problem


class SourceFault(Enum):
    """The value is the code and the title."""

    UNREADABLE = ("RC501", "A path cannot be read")
    LINK_LEAVES = ("RC502", "A link leads out of the policies")
    NOT_A_FILE = ("RC503", "A name of a policy is no regular file")
    TOO_MUCH = ("RC504", "There is more than a bundle may hold")
    BAD_NAME = ("RC505", "A name cannot be shown")
    CHANGING = ("RC506", "The files keep changing")
    TWO_OF_ONE_NAME = ("RC507", "Two templates have one name")
    NOTHING_GOOD_YET = ("RC508", "No good revision has been read yet")
    BROKE_OFF = ("RC509", "Reading broke off")
    BAD_ADDRESS = ("RC511", "An address of a repository is refused")
    BAD_REVISION = ("RC512", "A revision is refused, or is not there")
    KEPT_ELSEWHERE = ("RC513", "The repository does not hold the content itself")
    TOO_LONG = ("RC514", "Git was ended before it was done")
    GIT_FAILED = ("RC515", "Git cannot read the repository")

    @property
    def code(self) -> str:
        return self.value[0]

    @property
    def title(self) -> str:
        return self.value[1]

    def problem(self, file: str, sentence: str, remedy: str) -> Problem:
        """A Problem of the file as a whole."""
        return Problem(file, 0, 0, self.code, sentence, remedy)


class Refused(Exception):
    """Ends the reading of a source for one fault of the whole."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.sentence)
        self.problem = problem
