"""`make lab`: a lab for a person, with a demo fleet, until Ctrl-C."""

import sys
import time

from tests.lab import build
from tests.lab.build import say
from tests.lab.demo_fleet import load_demo_fleet
from tests.lab.lab import Lab
from tests.lab.places import cache_directory
from tests.lab.toolchain import LabUnavailable

USAGE = "usage: python -m tests.lab [build | cache]"


def main(arguments: list[str]) -> int:
    if arguments == ["cache"]:
        print(cache_directory())
        return 0
    if arguments not in ([], ["build"]):
        say(USAGE)
        return 64
    try:
        built = build.built()
    except LabUnavailable as missing:
        say(str(missing))
        return 0 if arguments else 1  # the tests themselves decide whether they can go without
    if not arguments:
        _serve(built)
    return 0


def _serve(built: build.Built) -> None:
    try:
        with Lab(built) as lab:
            say("control plane is up; starting scheduler, KWOK and Karpenter")
            lab.start("scheduler", "kwok", "karpenter")
            load_demo_fleet(lab)
            config = lab.site.kubeconfig("admin", lab.admin)
            print(f"export KUBECONFIG={config}")
            print(f"alias kubectl='{built.binary('kube')} kubectl'", flush=True)
            say("12 GPU nodes in two pools; logs are beside the kubeconfig; Ctrl-C stops everything")
            while not (fallen := lab.fallen()):
                time.sleep(0.5)
            say(f"{fallen.name} ended by itself: stopping the rest. The end of its log:\n{fallen.last_words()}")
    except KeyboardInterrupt:
        say("stopped; nothing is left running")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
