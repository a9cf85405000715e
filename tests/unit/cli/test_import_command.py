"""`import` as users call it: what it writes and says, and that it writes all or nothing."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.files import AlreadyThere, write_all
from reconciler.cli.main import main
from reconciler.model.bundle import Text
from tests.lab import capacity, fleet

TOLD = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.memory": "40960"}
FILES = [Text("policies/base/a.yaml", b"new\n"), Text("templates/a.yaml.j2", b"new\n")]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder, and ourselves in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cluster(*items: dict[str, Any]) -> str:
    """A file as kubectl writes it."""
    Path("cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return "cluster.json"


def fixed() -> dict[str, Any]:
    """A NodePool that needs a template: no field says how many nodes Karpenter keeps."""
    return capacity.NodePool("a100", [capacity.P4D], more={"replicas": 2}).manifest()


def elaborate() -> dict[str, Any]:
    """A NodePool that says much that GpuPools have fields for."""
    found = capacity.NodePool("a100", [capacity.P4D], more={"weight": 10}).manifest()
    template = found["spec"]["template"]
    template["spec"]["startupTaints"] = [
        {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}
    ]
    template.setdefault("metadata", {})["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    found["spec"]["disruption"] = {
        "consolidationPolicy": "Balanced",
        "consolidateAfter": "30s",
        "budgets": [{"nodes": "10%"}, {"nodes": "0", "schedule": "@daily", "duration": "8h", "reasons": ["Drifted"]}],
    }
    return dict(found)


def test_weight_startup_taints_annotations_and_scheduled_budgets_need_no_template(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that they can be custom resources, which bring no template along."""
    file = cluster(elaborate(), *fleet.nodes(1, fleet.Shape(pool="a100", labels=TOLD)))
    assert main(["import", "--cluster", file]) == 0
    told = capsys.readouterr()
    assert told.out == "policies/base/a100.yaml\n"
    assert "would change" not in told.err
    assert main(["render", "--as-resources"]) == 0
    assert "startupTaints" in capsys.readouterr().out


def everything(folder: Path) -> dict[str, str]:
    """All files below a folder, hidden ones too."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_what_was_written_is_on_standard_output_and_all_else_is_talk(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = cluster(fixed(), *fleet.nodes(1, fleet.Shape(pool="a100", labels=TOLD)))
    assert main(["import", "--cluster", file, "--to", "out"]) == 0
    told = capsys.readouterr()
    assert told.out == "out/policies/base/a100.yaml\nout/templates/a100.yaml.j2\n"
    assert told.err.endswith(
        "next: `reconciler plan --policies out/policies` shows the effect of adopting the NodePools\n"
    )
    assert main(["validate", "out/policies"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["render", "out/policies"]) == 0
    assert "replicas: 2" in capsys.readouterr().out


def test_what_could_not_be_known_is_told_and_makes_the_exit_code_that_of_invalid_policies(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", "--cluster", cluster(fixed())]) == 3
    told = capsys.readouterr()
    assert told.out == "policies/base/a100.yaml\ntemplates/a100.yaml.j2\n"
    assert "note: policies/base/a100.yaml: the memory of a GPU is unknown (nodes: the file contains none" in told.err
    assert told.err.endswith("`reconciler validate policies` finds no problem\n")
    assert main(["validate"]) == 3
    assert 'spec.devices.memory: expected a quantity such as 8, 500m or 40Gi, got "UNKNOWN"' in capsys.readouterr().out


def test_a_file_that_is_there_is_kept_unless_forced(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = cluster(fixed())
    mine = here / "templates" / "a100.yaml.j2"
    mine.parent.mkdir()
    mine.write_text("mine")
    before = everything(here)
    assert main(["import", "--cluster", file]) == 1
    assert "files exist: templates/a100.yaml.j2; nothing was written" in capsys.readouterr().err
    assert everything(here) == before
    assert main(["import", "--cluster", file, "--force"]) == 3
    assert mine.read_text() != "mine"
    assert sorted(everything(here)) == ["cluster.json", "policies/base/a100.yaml", "templates/a100.yaml.j2"]


def test_only_the_pools_that_are_named_and_none_if_one_of_them_is_not_there(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = cluster(fixed(), capacity.NodePool("l4", [capacity.G6]).manifest())
    assert main(["import", "--cluster", file, "l4", "a10"]) == 1
    assert 'NodePool/a10 is skipped: there is no NodePool of this name; did you mean "a100"?' in capsys.readouterr().err
    assert sorted(everything(here)) == ["cluster.json"]
    assert main(["import", "--cluster", file, "l4"]) == 3
    assert sorted(everything(here)) == ["cluster.json", "policies/base/l4.yaml"]


def test_where_nothing_is_to_be_imported_that_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "--cluster", cluster(capacity.NodePool("web", [capacity.CPU_ONLY]).manifest())]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "NodePool/web is skipped: its nodes have no GPUs: m6i.2xlarge" in told.err
    assert told.err.endswith("nothing to import: every NodePool with GPUs already has a policy\n")


def test_where_there_are_no_node_pools_at_all_that_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = cluster(*fleet.nodes(1))
    assert main(["import", "--cluster", file, "--complete"]) == 0
    assert capsys.readouterr().err.endswith("nothing to import: the cluster has no NodePools\n")


def test_no_answer_about_node_pools_is_not_taken_for_a_cluster_without_them(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", "--cluster", cluster(*fleet.nodes(1))]) == 1
    assert "nothing to import: NodePools could not be read: nodepools.karpenter.sh: " in capsys.readouterr().err


def test_a_file_that_holds_no_cluster_is_told_in_a_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("cluster.json").write_text('{"kind": "Pod"}')
    assert main(["import", "--cluster", "cluster.json"]) == 1
    assert "Error: cluster.json: the file contains one Pod" in capsys.readouterr().err


def test_text_from_the_cluster_can_not_steer_the_terminal(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = fixed()
    pool["metadata"]["name"] = "a\x1b[2Jb"
    assert main(["import", "--cluster", cluster(pool)]) == 1
    told = capsys.readouterr().err
    assert r'"a\x1b[2Jb" is not a valid name of a NodePool' in told
    assert "\x1b" not in told


@pytest.mark.parametrize("name", ["../../outside", "..", "a/b"])
def test_a_name_that_would_lead_out_of_the_folder_writes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    pool = fixed()
    pool["metadata"]["name"] = name
    assert main(["import", "--cluster", cluster(pool), "--to", "fleet"]) == 1
    assert "is not a valid name of a NodePool" in capsys.readouterr().err
    assert not Path("fleet").exists()


def test_files_are_written_with_the_folders_that_they_need(tmp_path: Path) -> None:
    assert write_all(tmp_path / "to", FILES) == (
        tmp_path / "to/policies/base/a.yaml",
        tmp_path / "to/templates/a.yaml.j2",
    )
    assert everything(tmp_path) == {"to/policies/base/a.yaml": "new\n", "to/templates/a.yaml.j2": "new\n"}


def test_a_file_may_be_read_by_whom_the_user_lets_read(tmp_path: Path) -> None:
    (tmp_path / "beside").write_text("")
    (written,) = write_all(tmp_path, FILES[:1])
    assert written.stat().st_mode == (tmp_path / "beside").stat().st_mode


def test_nothing_is_written_where_one_file_can_not_be(tmp_path: Path) -> None:
    (tmp_path / "templates").write_text("a file, where a folder is needed")
    before = everything(tmp_path)
    with pytest.raises(OSError, match="templates"):
        write_all(tmp_path, FILES)
    assert everything(tmp_path) == before
    assert not (tmp_path / "policies").exists()


def test_what_was_replaced_comes_back_when_a_later_file_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_all(tmp_path, [Text(file.path, b"old\n") for file in FILES])
    before = everything(tmp_path)
    replace, last = Path.replace, tmp_path / FILES[-1].path

    def failing(source: Path, target: Path) -> Path:
        if target == last and source.read_bytes() == b"new\n":
            raise OSError(28, os.strerror(28))
        return replace(source, target)

    with pytest.raises(AlreadyThere):
        write_all(tmp_path, FILES)
    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(OSError, match="No space left"):
        write_all(tmp_path, FILES, overwrite=True)
    assert everything(tmp_path) == before
