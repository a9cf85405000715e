"""What the product brings along is found, and Karpenter's schema is made once, from the version that the lab pins."""

import json
import shutil
from pathlib import Path

import pytest

import build_karpenter_schema
from reconciler.sources import input_file
from tests.lab import toolchain
from tests.lab.places import MODULE, REPOSITORY

MADE = "reconciler/defaults/karpenter.sh_nodepools.json"


def test_a_checkout_s_templates_are_the_defaults() -> None:
    found = {text.path: text.content for text in input_file.default_templates()}
    assert found == {path.name: path.read_bytes() for path in (REPOSITORY / "templates").iterdir()}


def test_without_a_schema_there_is_none_and_a_sentence_for_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(input_file, "_package", lambda: tmp_path)
    input_file.karpenter_schema.cache_clear()
    assert input_file.karpenter_schema() is None
    assert "were not checked against Karpenter's schema" in input_file.NOT_CHECKED
    input_file.karpenter_schema.cache_clear()


@pytest.mark.parametrize(
    ("version", "asked", "is_built"), [("standard", "", False), ("standard", "1", True), ("editable", "", True)]
)
def test_no_wheel_is_built_without_the_schema_unless_it_is_asked_for(
    version: str, asked: str, is_built: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(build_karpenter_schema, "make", lambda _: False)
    monkeypatch.setenv("RECONCILER_WITHOUT_KARPENTER_SCHEMA", asked)
    hook = build_karpenter_schema.PackagedDefaults(str(tmp_path), {}, None, None, str(tmp_path), "wheel")  # type: ignore[arg-type]
    if is_built:
        hook.initialize(version, {"force_include": {}})
    else:
        with pytest.raises(RuntimeError, match="no wheel is built without"):
            hook.initialize(version, {"force_include": {}})


def test_templates_of_a_package_are_found_in_their_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("b.j2", "a/c.yaml.j2", "README.md"):
        (tmp_path / "templates" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "templates" / name).write_text("x")
    monkeypatch.setattr(input_file, "_package", lambda: tmp_path)
    input_file.default_templates.cache_clear()
    assert [text.path for text in input_file.default_templates()] == ["a/c.yaml.j2", "b.j2"]
    input_file.default_templates.cache_clear()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    shutil.copytree(MODULE, tmp_path / "tests" / "control_plane")
    return tmp_path


def unavailable(tell: object) -> Path:
    raise toolchain.LabUnavailable("no Go is to be had")


def test_without_go_the_product_is_built_without_the_schema_and_says_so(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(toolchain, "go", unavailable)
    assert not build_karpenter_schema.make(checkout)
    assert "NodePools will not be checked against it: no Go is to be had" in capsys.readouterr().err
    assert not (checkout / MADE).exists()


def test_a_schema_of_the_pinned_version_is_not_made_again(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "go", unavailable)
    (checkout / MADE).parent.mkdir(parents=True)
    content = json.dumps({"version": build_karpenter_schema.pinned_version(MODULE), "schema": {}})
    (checkout / MADE).write_text(content)
    assert build_karpenter_schema.make(checkout)
    assert (checkout / MADE).read_text() == content


def test_a_source_distribution_keeps_the_schema_that_it_holds(tmp_path: Path) -> None:
    assert not build_karpenter_schema.make(tmp_path)
    (tmp_path / MADE).parent.mkdir(parents=True)
    (tmp_path / MADE).write_text("{}")
    assert build_karpenter_schema.make(tmp_path)


def test_the_schema_is_taken_out_of_karpenter_s_definition_without_its_prose(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path_factory.mktemp("karpenter")
    definition = module / build_karpenter_schema.DEFINITION
    definition.parent.mkdir(parents=True)
    definition.write_text(
        "spec: {versions: [{name: old, storage: false}, {name: v1, storage: true, schema: {openAPIV3Schema: "
        "{type: object, description: prose, properties: {description: {type: string, description: prose}}}}}]}"
    )
    monkeypatch.setattr(build_karpenter_schema, "_downloaded", lambda *_: module)
    assert build_karpenter_schema.make(checkout)
    assert json.loads((checkout / MADE).read_text()) == {
        "module": "sigs.k8s.io/karpenter",
        "version": build_karpenter_schema.pinned_version(MODULE),
        "schema": {"type": "object", "properties": {"description": {"type": "string"}}},
    }
