"""Paths of the API server: the only place that puts them together.

Groups, resources and subresources are of a closed set; names and namespaces are held against what the API server
allows, and quoted. The client refuses every path that could not have been made here: a name that leads out of its
folder never becomes a request, wherever it came from.
"""

import re
from urllib.parse import quote

from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.object_names import BadName, is_namespace, is_object_name, shortened

# What is asked for or written, and never looked at as a kind.
_OTHERS = frozenset({("", "configmaps"), ("events.k8s.io", "events"), ("apps", "deployments")})
RESOURCES = frozenset((each.group, each.plural) for each in RESOURCE_KINDS) | _OTHERS
SUBRESOURCES = frozenset({"binding", "eviction", "resize", "status"})

_VERSION = re.compile(r"v[0-9]{1,4}((alpha|beta)[0-9]{1,4})?")
_LONGEST_PATH = 2_000
_PATH = re.compile(r"(/[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?)+")
_UP = re.compile(r"\.\.")


class BadPath(BadName):
    """No path of the API server that is ever asked for; the sentence says what is wrong with it."""


def folder(group: str, plural: str, namespace: str = "", version: str = "v1") -> str:
    """Where objects of a resource are listed and made: those of one namespace, or all. Raises BadPath."""
    if (group, plural) not in RESOURCES:
        raise BadPath(f"{shortened(plural)} of the group {shortened(group)} is no resource that is asked for")
    if not _VERSION.fullmatch(version):
        raise BadPath(f"{shortened(version)} is no version of an API")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return f"{root}/namespaces/{_namespace(namespace)}/{plural}" if namespace else f"{root}/{plural}"


def folder_in(namespace: str, group: str, plural: str) -> str:
    """Where objects of a resource are made in one namespace. Raises BadPath, also where none is named."""
    _namespace(namespace)
    return folder(group, plural, namespace)


def below(folder_path: str, name: str, subresource: str = "") -> str:
    """An object in a folder, or a subresource of it. Raises BadPath."""
    if not is_object_name(name):
        raise BadPath(f"{shortened(name)} is no name of an object")
    if subresource and subresource not in SUBRESOURCES:
        raise BadPath(f"{shortened(subresource)} is no subresource that is written")
    end = f"/{subresource}" if subresource else ""
    return f"{folder_path}/{quote(name, safe='')}{end}"


def checked(path: str) -> str:
    """The path, where it is one that could have been made here, or is asked by a fixed text. Raises BadPath."""
    if len(path) > _LONGEST_PATH or not _PATH.fullmatch(path) or _UP.search(path):
        raise BadPath(f"{shortened(path)} is no path of an API server")
    return path


def _namespace(namespace: str) -> str:
    if not is_namespace(namespace):
        raise BadPath(f"{shortened(namespace)} is no namespace")
    return quote(namespace, safe="")
