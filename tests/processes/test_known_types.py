"""All types are known before threads read them: one that two of them find out about at once ends the process."""

import os
import subprocess
import sys
from pathlib import Path

# What msgspec asks for when it finds out about a type is told; at the end of one that nobody has seen.
_PROGRAM = """
import sys
from contextlib import suppress
import msgspec
from reconciler.kube.client import connect
from reconciler.kube.decode import Undecodable, one, page
from reconciler.model.cluster.metadata import Lease
from reconciler.kube.memory_store import _ConfigMap, _Head, _List
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.plan.memory import Memory
from reconciler.controller import run

connect()
told = []

def follow(frame, event, _):
    if event == "call" and frame.f_code.co_name == "get_class_annotations":
        told.append(str(frame.f_locals["obj"]))

sys.setprofile(follow)
for seen in RESOURCE_KINDS:
    for read in (one, page):
        with suppress(Undecodable):
            read(seen, b'{"metadata": {}}')
for each in (Lease, Memory, _ConfigMap, _Head, _List):
    with suppress(msgspec.ValidationError):
        msgspec.json.decode(b"{}", type=each)
print(told)
msgspec.json.Decoder(msgspec.defstruct("Unseen", [("number", int)]))
print(told)
"""

_KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
users: [{name: none, user: {}}]
"""


def test_who_has_connected_to_a_cluster_finds_out_about_no_type_any_more(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(_KUBECONFIG)
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, env=environment, check=True)
    known, unseen = done.stdout.splitlines()
    assert known == "[]"
    assert "Unseen" in unseen
