"""The example fleet at three revisions: as it is, as a pull request would have it, and as it is merged in the end."""

import msgspec

from reconciler.controller.policies import Checkup, check_bundle
from reconciler.model.bundle import Bundle, Text
from reconciler.model.desired import Desired
from reconciler.policy.environments import chosen
from reconciler.sources.defaults import example_policies

ENVIRONMENT = "prod"
_FILE = "policies/base/a100-training.yaml"


class LineEdit(msgspec.Struct, frozen=True):
    """One line of a policy."""

    file: str
    before: str
    after: str


_TAINTS = '  taints: [{{key: nvidia.com/gpu, value: "true", effect: NoSchedule}}{more}]'
RAISED = LineEdit(_FILE, "  minGPUUtilizationPercent: 70", "  minGPUUtilizationPercent: 80")
TAINTED = LineEdit(
    _FILE, _TAINTS.format(more=""), _TAINTS.format(more=", {key: dedicated, value: training, effect: NoSchedule}")
)


class DemoRevision(msgspec.Struct, frozen=True):
    """The policies at a revision, checked."""

    texts: tuple[Text, ...]
    checkup: Checkup

    @property
    def desired(self) -> Desired:
        return chosen(self.checkup.resolved, ENVIRONMENT)


def revision(name: str, *edits: LineEdit) -> DemoRevision:
    """The fleet with these lines edited. Raises ValueError where a line is not there any more."""
    texts = tuple(_edited(text, edits) for text in example_policies())
    if (known := {each.path for each in texts}) and (lost := [each.file for each in edits if each.file not in known]):
        raise ValueError(f"the example fleet has no {', '.join(lost)}")
    return DemoRevision(texts, check_bundle(Bundle(name, texts), "policies"))


def _edited(text: Text, edits: tuple[LineEdit, ...]) -> Text:
    content = text.content.decode()
    for each in edits:
        if each.file == text.path:
            if each.before not in content:
                raise ValueError(f'the example fleet has no line "{each.before}" in {each.file}')
            content = content.replace(each.before, each.after)
    return msgspec.structs.replace(text, content=content.encode())
