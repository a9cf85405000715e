"""Faults in words: what went wrong, and that it is over."""

from collections.abc import Sequence

from reconciler.model.human_time import span
from reconciler.report.wording import counted
from reconciler.simulate.scenario.fault import ScenarioFault

_NAMED = 3  # nodes that are named when they die


def death_words(doomed: Sequence[str], pool: str) -> str:
    """The machines of these nodes are gone."""
    if not doomed:
        return f"no machine{f' of {pool}' if pool else ''} is there to die"
    return f"{counted(len(doomed), 'machine')} {'dies' if len(doomed) == 1 else 'die'}: {_listed(doomed)}"


def lapse_words(stricken: Sequence[str], pool: str) -> str:
    """These nodes are not ready for a while."""
    if not stricken:
        return f"no node{f' of {pool}' if pool else ''} is there to be not ready"
    return f"{counted(len(stricken), 'node')} {'is' if len(stricken) == 1 else 'are'} not ready: {_listed(stricken)}"


def silence_words(stricken: Sequence[str], pool: str) -> str:
    """The kubelets of these nodes are gone."""
    if not stricken:
        return f"no kubelet{f' of {pool}' if pool else ''} is there to stop"
    return f"{counted(len(stricken), 'kubelet')} {'stops' if len(stricken) == 1 else 'stop'}: {_listed(stricken)}"


def _listed(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return f"{', '.join(nodes[:_NAMED])}{more}"


def begin_words(fault: ScenarioFault) -> str:
    """What is wrong from now on."""
    late = span(fault.delay.milliseconds // 1_000)
    match fault.fault:
        case "StockOut":
            return f"{_stock(fault)} can't be bought" if fault.instance_type else f"no {_stock(fault)} can be bought"
        case "NotOffered":
            return f"{_stock(fault)} is not offered" if fault.instance_type else f"no {_stock(fault)} is offered"
        case "SlowApi":
            return f"the API server takes {late} to answer"
        case "LateWatch":
            return f"watches tell {late} late"
        case "EvictionsFail":
            return "the API server fails evictions"
        case "SlowKubelets":
            return f"pods start and end {late} late"
        case "SlowWorkloads":
            return f"pods are made anew {late} late"
        case "ControllerCrash":
            later = f" after {counted(fault.after_writes, 'more write')}" if fault.after_writes else ""
            return f"the controller crashes{later}"
        case _:
            return "the controller is gone"


def end_words(fault: ScenarioFault) -> str:
    """It is over."""
    match fault.fault:
        case "StockOut":
            return f"{_stock(fault, 'machines')} can be bought again"
        case "NotOffered":
            return f"{_stock(fault, 'machines')} {'is' if fault.instance_type else 'are'} offered again"
        case "SlowApi":
            return "the API server answers as usual"
        case "LateWatch":
            return "watches tell as usual"
        case "NodeNotReady":
            return "nodes are ready again"
        case "KubeletDown":
            return "kubelets are back"
        case "EvictionsFail":
            return "the API server weighs evictions as usual"
        case "SlowKubelets":
            return "pods start and end as usual"
        case "SlowWorkloads":
            return "pods are made anew as usual"
        case _:
            return "the controller is back"


def _stock(fault: ScenarioFault, any_machine: str = "machine") -> str:
    """Machines as a person names them: spot machines in zone-a, p4d.24xlarge on-demand."""
    kind, where = fault.capacity_type or "", f"in {fault.zone}" if fault.zone else ""
    words = [fault.instance_type, kind, where] if fault.instance_type else [kind, any_machine, where]
    return " ".join(filter(None, words))
