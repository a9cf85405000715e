"""What statuses are told from, beside a plan and its inputs."""

import msgspec

from reconciler.model import names
from reconciler.model.problem import Problem


class StatusContext(msgspec.Struct, frozen=True):
    """`problems`: of the policies that were read last. While there are any, what was good before stays in force."""

    problems: tuple[Problem, ...] = ()
    are_resources: bool = False  # the policies are custom resources, and are told themselves
    namespace: str = names.OWN_NAMESPACE  # where the ConfigMap is that tells of them otherwise
    before: str = ""  # the manifest of that ConfigMap as it was written last
