"""Commands write policies as custom resources, and read them from a cluster again."""

from pathlib import Path

import msgspec
import pytest
import yaml

from reconciler.cli.main import main
from tests.lab.places import REPOSITORY
from tests.unit.policy.custom_resources.stage import POLICIES


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with policies/all.yaml, and ourselves in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "all.yaml").write_text(POLICIES)
    return tmp_path


def rendered(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["render", "--as-resources"]) == 0
    return capsys.readouterr().out


def cluster_of(folder: Path, text: str, left_out: int = 0) -> str:
    """A cluster file with the custom resources of the text."""
    items = list(yaml.safe_load_all(text))[left_out:]
    path = folder / "cluster.json"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


def test_what_is_rendered_says_where_it_was_written_and_is_always_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = rendered(capsys)
    assert first == rendered(capsys)
    assert first.startswith("# policies/all.yaml:3 at dir:")
    kinds = [each["kind"] for each in yaml.safe_load_all(first)]
    assert kinds == ["GpuPool", "GpuPool", "NodeProvisioner", "ChangeGuard"]


def test_a_plan_of_the_custom_resources_is_that_of_the_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = cluster_of(folder, rendered(capsys))
    told = []
    for source in (["--policies", "policies"], ["--resources"]):
        assert main(["plan", "--cluster", path, "--complete", "-o", "json", *source]) == 0
        plan = msgspec.json.decode(capsys.readouterr().out)
        told.append([(each["subject"], each["reason"], each["action"]) for each in plan["decisions"]])
    assert told[0] == told[1] != []


def test_half_a_bundle_is_no_policy(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = cluster_of(folder, rendered(capsys), left_out=1)
    assert main(["plan", "--cluster", path, "--complete", "--resources"]) == 3
    told = capsys.readouterr().err
    assert "custom resources: error[RC521]: no bundle is complete: 3 of 4 objects of bundle" in told
    assert "missing: GpuPool/a100" in told


@pytest.mark.parametrize("command", ["plan", "explain", "status"])
def test_a_file_without_policies_is_no_lack_of_rights(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["node/a"] if command == "explain" else []
    assert main([command, *arguments, "--cluster", cluster_of(folder, ""), "--resources"]) == 3
    text = capsys.readouterr().err
    assert "error[RC523]" in text
    assert "add --complete if the cluster has no such policies" in text
    assert "rights" not in text


def test_a_template_of_one_s_own_can_t_come_along(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    templates = folder / "policies" / "templates"
    templates.mkdir()
    brought = (REPOSITORY / "templates" / "node_pool.yaml.j2").read_text()
    (templates / "node_pool.yaml.j2").write_text(brought)
    assert main(["render", "--as-resources"]) == 0, "the same template is no other"
    (templates / "node_pool.yaml.j2").write_text("{# ours #}\n" + brought)
    capsys.readouterr()
    assert main(["render", "--as-resources"]) == 1
    wrong = capsys.readouterr()
    assert wrong.out == ""
    assert "GpuPool/a100, GpuPool/l4: custom resources cannot include their own templates" in wrong.err


@pytest.mark.parametrize("more", [["--policies", "policies"], ["--repo", "."]])
def test_policies_are_in_one_place(folder: Path, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = cluster_of(folder, rendered(capsys))
    assert main(["plan", "--cluster", path, "--resources", *more]) == 64
    assert "cannot be combined" in " ".join(capsys.readouterr().err.split())


def test_custom_resources_have_no_other_revision_to_be_compared_with(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = cluster_of(folder, rendered(capsys))
    assert main(["plan", "--cluster", path, "--complete", "--resources", "--base", "main"]) == 1
    assert "no Git revisions to compare with, such as main" in capsys.readouterr().err


def test_rendering_into_a_file_writes_what_would_be_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "--as-resources", "--out", "out.yaml"]) == 0
    assert capsys.readouterr().out == ""
    assert (folder / "out.yaml").read_text() == rendered(capsys)


@pytest.mark.parametrize(
    ("edit", "code"),
    [("maxSize: 9", 3), ("---", 3), ("mode: Enforce", 1), ("", 64)],
    ids=["a problem", "no YAML", "a template of one's own", "no such environment"],
)
def test_a_refused_rendering_leaves_the_file_as_it_is(folder: Path, edit: str, code: int) -> None:
    """Else an empty file would be committed, and prune every policy."""
    (folder / "out.yaml").write_text("kind: Before\n")
    arguments = ["render", "--as-resources", "--out", "out.yaml", *([] if edit else ["-e", "nowhere"])]
    if code == 3:
        (folder / "policies" / "all.yaml").write_text(POLICIES.replace(edit, "maxSize: [", 1))
    elif code == 1:
        (folder / "templates").mkdir()
        (folder / "templates" / "own.yaml.j2").write_bytes((REPOSITORY / "templates/node_pool.yaml.j2").read_bytes())
        own = f"{edit}\n  template: own.yaml.j2"
        (folder / "policies" / "all.yaml").write_text(POLICIES.replace(edit, own, 1))
    assert main(arguments) == code
    assert (folder / "out.yaml").read_text() == "kind: Before\n"
    assert [each.name for each in folder.iterdir() if each.suffix == ".unfinished"] == []


@pytest.mark.parametrize("form", [[], ["--as-resources"]], ids=["manifests", "resources"])
def test_rendering_nothing_needs_consent_unless_nothing_was_there_before(
    folder: Path, form: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "policies" / "all.yaml").unlink()
    out, arguments = folder / "out.yaml", ["render", *form, "--out", "out.yaml"]
    for before in (None, "kind: Before\n", "{"):
        if before is not None:
            out.write_text(before)
        assert main(arguments) == 1
        assert "--allow-empty" in capsys.readouterr().err
        assert (out.read_text() if out.exists() else None) == before
    assert main(["render", *form]) == 1
    assert main([*arguments, "--allow-empty"]) == 0
    assert out.read_text() == ""
    for before in ("", "---\n# nothing\n"):
        out.write_text(before)
        assert main(arguments) == 0
