"""What the documentation says of pod affinity and topology spread, written down pod by pod and node by node, slowly.

It works on plain manifests and shares nothing with the fleet, so that the two can be compared.
"""

from typing import Any

Json = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HARD = ("NoSchedule", "NoExecute")


def labels(thing: Json) -> Json:
    found: Json = thing["metadata"].get("labels", {})
    return found


def meets(requirement: Json, found: Json) -> bool:
    value = found.get(requirement["key"])
    match requirement["operator"]:
        case "In":
            return value is not None and value in requirement["values"]
        case "NotIn":
            return value is None or value not in requirement["values"]
        case "Exists":
            return value is not None
    return value is None


def selects(selector: Json | None, found: Json) -> bool:
    """No selector selects nothing; an empty one selects everything."""
    if selector is None:
        return False
    equal = all(found.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return equal and all(meets(each, found) for each in selector.get("matchExpressions", []))


def with_own(selector: Json | None, operator: str, keys: list[str], pod: Json) -> Json | None:
    if selector is None:
        return None
    own = [{"key": key, "operator": operator, "values": [labels(pod)[key]]} for key in keys if key in labels(pod)]
    return {**selector, "matchExpressions": [*selector.get("matchExpressions", []), *own]} if own else selector


def terms(pod: Json, kind: str) -> list[Json]:
    found: list[Json] = pod["spec"].get("affinity", {}).get(kind, {}).get(REQUIRED, [])
    return found


def looks_for(world: Json, pod: Json, term: Json, other: Json) -> bool:
    """Whether the term of a pod without a node is about another.

    Not documented: a selector of namespaces that one without labels would meet is about all pods.
    """
    return means(world, pod, term, other) or means({"namespaces": []}, pod, term, other)


def means(world: Json, owner: Json, term: Json, other: Json) -> bool:
    """Whether the term of a pod that has its node is about another."""
    namespace = other["metadata"]["namespace"]
    named, selector = term.get("namespaces", []), term.get("namespaceSelector")
    if not named and selector is None:
        within = namespace == owner["metadata"]["namespace"]
    else:
        found = {each["metadata"]["name"]: labels(each) for each in world["namespaces"]}
        within = namespace in named or selects(selector, found.get(namespace, {}))
    wanted = term.get("labelSelector")
    if "uid" not in owner["metadata"]:
        wanted = with_own(wanted, "In", term.get("matchLabelKeys", []), owner)
        wanted = with_own(wanted, "NotIn", term.get("mismatchLabelKeys", []), owner)
    return within and selects(wanted, labels(other))


def running(world: Json) -> list[tuple[Json, Json]]:
    """Pods that are on a node and not finished, each with its node."""
    nodes = {each["metadata"]["name"]: each for each in world["nodes"]}
    return [
        (pod, nodes[pod["spec"]["nodeName"]])
        for pod in world["pods"]
        if pod["spec"].get("nodeName") in nodes and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    ]


def together(one: Json, other: Json, key: str) -> bool:
    return key in labels(one) and labels(one)[key] == labels(other).get(key)


def interpod_fits(world: Json, pod: Json, node: Json) -> bool:
    near, apart, there = terms(pod, "podAffinity"), terms(pod, "podAntiAffinity"), running(world)
    for term in apart:
        if any(looks_for(world, pod, term, other) and together(node, at, term["topologyKey"]) for other, at in there):
            return False
    for other, at in there:
        for term in terms(other, "podAntiAffinity"):
            if means(world, other, term, pod) and together(node, at, term["topologyKey"]):
                return False
    return not near or near_enough(world, pod, node)


def near_enough(world: Json, pod: Json, node: Json) -> bool:
    near = terms(pod, "podAffinity")
    wanted = [(other, at) for other, at in running(world) if all(looks_for(world, pod, term, other) for term in near)]
    keys = [term["topologyKey"] for term in near]
    if any(key not in labels(node) for key in keys):
        return False
    if all(any(together(node, at, key) for _, at in wanted) for key in keys):
        return True
    nobody = not any(key in labels(at) for _, at in wanted for key in keys)
    return nobody and all(looks_for(world, pod, term, pod) for term in near)


def spread_fits(world: Json, pod: Json, node: Json) -> bool:
    rules = [
        each
        for each in pod["spec"].get("topologySpreadConstraints", [])
        if each["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    return all(even_enough(world, pod, rule, rules, node) for rule in rules)


def even_enough(world: Json, pod: Json, rule: Json, rules: list[Json], node: Json) -> bool:
    key = rule["topologyKey"]
    if key not in labels(node):
        return False
    selector = with_own(rule.get("labelSelector"), "In", rule.get("matchLabelKeys", []), pod)
    found: dict[str, int] = {}
    for each in world["nodes"]:
        if eligible(pod, rule, rules, each):
            found.setdefault(labels(each)[key], 0)
    for other, at in running(world):
        own = other["metadata"]["namespace"] == pod["metadata"]["namespace"]
        stays = "deletionTimestamp" not in other["metadata"]
        # An empty selector selects the pod itself, and yet none of the others is counted.
        counts = selects(selector, labels(other)) and not empty(selector)
        if own and stays and counts and eligible(pod, rule, rules, at):
            found[labels(at)[key]] += 1
    enough = len(found) >= rule.get("minDomains", 1)
    least = min(found.values()) if enough else 0
    most: int = rule["maxSkew"] + least
    return found.get(labels(node)[key], 0) + int(selects(selector, labels(pod))) <= most


def empty(selector: Json | None) -> bool:
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")


def eligible(pod: Json, rule: Json, rules: list[Json], node: Json) -> bool:
    if any(each["topologyKey"] not in labels(node) for each in rules):
        return False
    if rule.get("nodeAffinityPolicy", "Honor") == "Honor" and not may_run(pod, node):
        return False
    return rule.get("nodeTaintsPolicy", "Ignore") == "Ignore" or bears_all(pod, node)


def may_run(pod: Json, node: Json) -> bool:
    selector = pod["spec"].get("nodeSelector", {})
    required = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED)
    if any(labels(node).get(key) != value for key, value in selector.items()):
        return False
    if required is None:
        return True
    return any(
        all(meets(each, labels(node)) for each in term["matchExpressions"]) for term in required["nodeSelectorTerms"]
    )


def bears_all(pod: Json, node: Json) -> bool:
    return all(
        any(
            each.get("key", taint["key"]) == taint["key"] and each["operator"] == "Exists"
            for each in pod["spec"].get("tolerations", [])
        )
        for taint in node["spec"].get("taints", [])
        if taint["effect"] in HARD
    )
