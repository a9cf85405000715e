"""Folders of policies: what is read, under which name, and that nothing hostile in them is more than a problem."""

import os
import socket
from pathlib import Path

import pytest

from reconciler.model.bundle import Bundle
from reconciler.sources.directory import FileTree, read_directory
from reconciler.sources.walk import BundleFile, SourceBounds
from tests.unit.sources.stage import POLICY, codes, sentences, texts


@pytest.fixture
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder `policies`, as a user beside it would say."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies" / "base").mkdir(parents=True)
    (tmp_path / "policies" / "base" / "a.yaml").write_bytes(POLICY)
    return Path("policies")


def names(bundle: Bundle) -> list[str]:
    return [text.path for text in bundle.policies]


def refused(root: Path, code: str, *words: str) -> Bundle:
    """The bundle, which has that one problem, which says all of the words."""
    bundle = read_directory(root, SourceBounds())
    assert codes(bundle) == [code]
    assert all(word in sentences(bundle) for word in words), sentences(bundle)
    assert bundle.problems[0].remedy
    return bundle


def test_policies_are_named_as_the_user_named_the_root(policies: Path, tmp_path: Path) -> None:
    for name in ("b.yml", "c.json", "D.YAML", "notes.md", ".hidden.yaml"):
        (policies / name).write_bytes(b"{}")
    (policies / ".git").mkdir()
    (policies / ".git" / "x.yaml").write_bytes(b"{}")
    bundle = read_directory(policies, SourceBounds())
    assert names(bundle) == ["policies/D.YAML", "policies/b.yml", "policies/base/a.yaml", "policies/c.json"]
    assert names(read_directory(tmp_path / "policies", SourceBounds()))[0] == f"{tmp_path}/policies/D.YAML"
    assert not bundle.problems


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
def test_a_kustomization_beside_policies_is_no_policy(policies: Path, name: str) -> None:
    (policies / name).write_text("resources: [base]\n")
    (policies / "base" / name).write_text("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n")
    bundle = read_directory(policies, SourceBounds())
    assert names(bundle) == ["policies/base/a.yaml"]
    assert not bundle.problems


def test_the_current_folder_leaves_no_dot_in_the_names(policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(policies)
    assert names(read_directory(Path(), SourceBounds())) == ["base/a.yaml"]


def test_templates_are_found_in_and_beside_the_root_and_named_from_their_folder(policies: Path) -> None:
    for folder in ("templates/aws", "policies/templates", "policies/base/templates/pods"):
        Path(folder).mkdir(parents=True)
    Path("policies/base/templates/pods/deep.yaml.j2").write_text("deep")
    Path("templates/aws/pool.yaml.j2").write_text("beside")
    Path("templates/readme.yaml").write_text("no template")
    Path("policies/templates/pod.yaml.j2").write_text("inside")
    Path("policies/templates/no-policy.yaml").write_text("{}")
    bundle = read_directory(policies, SourceBounds())
    assert [(one.path, one.content) for one in bundle.templates] == [
        ("aws/pool.yaml.j2", b"beside"),
        ("pod.yaml.j2", b"inside"),
        ("pods/deep.yaml.j2", b"deep"),
    ]
    assert names(bundle) == ["policies/base/a.yaml"]


def test_two_templates_of_one_name_are_a_problem_only_if_they_differ(policies: Path) -> None:
    for folder in ("templates", "policies/templates"):
        Path(folder).mkdir(parents=True)
        Path(folder, "pool.yaml.j2").write_text("same")
    assert not read_directory(policies, SourceBounds()).problems
    Path("templates/pool.yaml.j2").write_text("other")
    refused(policies, "RC507", "policies/templates/pool.yaml.j2", "templates/pool.yaml.j2")


def test_a_file_is_read_alone_and_several_roots_together(policies: Path) -> None:
    Path("more").mkdir()
    Path("more/b.yaml").write_bytes(POLICY)
    (policies / "c.yaml").write_bytes(POLICY)
    assert names(read_directory(policies / "base" / "a.yaml", SourceBounds())) == ["policies/base/a.yaml"]
    both = [Path("more"), policies, policies / "base"]
    assert names(read_directory(both, SourceBounds())) == ["more/b.yaml", "policies/base/a.yaml", "policies/c.yaml"]


def test_the_revision_is_made_of_names_and_contents(policies: Path) -> None:
    first = read_directory(policies, SourceBounds()).revision
    assert first.startswith("dir:")
    assert len(first) == len("dir:") + 64
    (policies / "base" / "a.yaml").touch()
    assert read_directory(policies, SourceBounds()).revision == first
    (policies / "base" / "a.yaml").rename(policies / "base" / "b.yaml")
    assert read_directory(policies, SourceBounds()).revision != first


def test_a_path_that_does_not_exist_is_a_problem(policies: Path) -> None:
    refused(Path("polices"), "RC501", "polices: the path cannot be read: No such file or directory")
    refused(Path("bad\0name"), "RC501", r"bad\x00name")


def test_a_file_that_may_not_be_read_says_why(policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really_open = os.open

    def denying(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "a.yaml":
            raise PermissionError(13, "Permission denied")
        return really_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", denying)
    refused(policies, "RC501", "policies/base/a.yaml", "Permission denied")


@pytest.mark.parametrize("target", ["/etc/passwd", "../secret.yaml", "/etc", "../../nowhere"])
def test_a_link_out_of_the_root_is_refused_and_not_followed(policies: Path, target: str) -> None:
    Path("secret.yaml").write_bytes(b"secret")
    (policies / "base" / ("out" if target == "/etc" else "out.yaml")).symlink_to(
        target if target[0] == "/" else f"../{target}"
    )
    bundle = refused(policies, "RC502", "policies/base/out", target)
    assert names(bundle) == ["policies/base/a.yaml"]


def test_a_link_that_has_nothing_to_do_with_policies_is_ignored(policies: Path) -> None:
    (policies / "README.md").symlink_to("/etc/passwd")
    assert not read_directory(policies, SourceBounds()).problems


def test_links_within_the_root_are_followed_under_their_own_names(policies: Path) -> None:
    (policies / "b.yaml").symlink_to("base/a.yaml")
    (policies / "again").symlink_to("base")
    assert names(read_directory(policies, SourceBounds())) == [
        "policies/again/a.yaml",
        "policies/b.yaml",
        "policies/base/a.yaml",
    ]


def test_a_link_from_one_root_into_another_stays_inside(policies: Path) -> None:
    Path("more").mkdir()
    Path("more/b.yaml").symlink_to("../policies/base/a.yaml")
    assert not read_directory([policies, Path("more")], SourceBounds()).problems
    assert codes(read_directory([policies / "base" / "a.yaml", Path("more")], SourceBounds())) == []
    assert codes(read_directory(Path("more"), SourceBounds())) == ["RC502"]


def test_links_in_circles_end(policies: Path) -> None:
    (policies / "base" / "up").symlink_to("..")
    (policies / "self").symlink_to(".")
    assert names(read_directory(policies, SourceBounds())) == ["policies/base/a.yaml"]
    (policies / "loop.yaml").symlink_to("loop.yaml")
    refused(policies, "RC501", "policies/loop.yaml", "Too many levels")


def test_folders_that_link_to_one_another_end_at_a_bound(policies: Path) -> None:
    folders = [policies / f"f{number:02}" for number in range(12)]
    for folder in folders:
        folder.mkdir()
        for other in folders:
            (folder / f"to-{other.name}").symlink_to(f"../{other.name}")
    bundle = read_directory(policies, SourceBounds(entries=5_000))
    assert set(codes(bundle)) == {"RC504"}
    assert "more than 5,000 names" in sentences(bundle)
    assert not bundle.policies


def test_a_swapped_mount_is_read_through_its_links(tmp_path: Path) -> None:
    mount = tmp_path / "mounted"
    content = mount / "..2026_11_18" / "templates"
    content.mkdir(parents=True)
    (content.parent / "a.yaml").write_bytes(POLICY)
    (content / "pool.yaml.j2").write_text("template")
    (mount / "..data").symlink_to("..2026_11_18")
    (mount / "a.yaml").symlink_to("..data/a.yaml")
    (mount / "templates").symlink_to("..data/templates")
    bundle = read_directory(mount, SourceBounds())
    assert names(bundle) == [f"{mount}/a.yaml"]
    assert [one.path for one in bundle.templates] == ["pool.yaml.j2"]
    assert not bundle.problems


def test_a_root_that_is_itself_a_link_is_read(policies: Path) -> None:
    Path("current").symlink_to("policies")
    assert names(read_directory(Path("current"), SourceBounds())) == ["current/base/a.yaml"]


def test_special_files_are_refused_without_waiting(policies: Path) -> None:
    os.mkfifo(policies / "fifo.yaml")
    refused(policies, "RC503", "policies/fifo.yaml: is a FIFO")
    refused(policies / "fifo.yaml", "RC503", "a FIFO")
    (policies / "fifo.yaml").unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("policies/s.yaml")
        refused(policies, "RC503", "policies/s.yaml: is a socket")
    refused(Path("/dev/null"), "RC503", "a character device")


def test_a_huge_file_is_refused_by_its_size(policies: Path) -> None:
    with (policies / "huge.yaml").open("wb") as huge:
        huge.truncate(1 << 30)
    bundle = refused(policies, "RC504", "policies/huge.yaml: the file has 1,073,741,824 bytes", "1,048,576")
    assert names(bundle) == ["policies/base/a.yaml"]


def test_as_many_files_as_may_be_are_read_and_of_more_none(policies: Path) -> None:
    for number in range(2_999):
        if number == 1_999:
            bundle = read_directory(policies, SourceBounds())
            assert (len(bundle.policies), bundle.problems) == (2_000, ())
        os.close(os.open(policies / f"{number}.yaml", os.O_CREAT | os.O_WRONLY))
    assert not refused(policies, "RC504", "3,000 files", "2,000").policies


def test_too_many_bytes_in_all_are_summed_and_none_is_read(policies: Path) -> None:
    for number in range(33):
        with (policies / f"{number}.yaml").open("wb") as file:
            file.truncate(1 << 20)
    assert not refused(policies, "RC504", "34,603,022 bytes", "33,554,432").policies


def test_folders_may_be_sixteen_deep(policies: Path) -> None:
    folder = policies
    for number in range(40):
        folder /= str(number)
        folder.mkdir()
        (folder / "x.yaml").write_bytes(POLICY)
    bundle = refused(policies, "RC504", "17 folders deep", "16")
    assert len(bundle.policies) == 17


@pytest.mark.parametrize("name", [b"\xff.yaml", b"a\nb.yaml", b"a\x1b[2J.yaml", "a\u202efdp.yaml".encode()])
def test_names_that_cannot_be_shown_are_refused_and_escaped(policies: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(policies) + b"/" + name)).write_bytes(POLICY)
    bundle = refused(policies, "RC505", "\\")
    assert sentences(bundle).isprintable()
    assert names(bundle) == ["policies/base/a.yaml"]


def test_a_change_in_the_middle_is_read_again(policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (policies / "b.yaml").write_bytes(b"old")
    changes = [b"newer"]
    really_read = FileTree.read

    def changing(self: FileTree, found: BundleFile) -> bytes:
        content = really_read(self, found)
        if changes:
            (policies / "b.yaml").write_bytes(changes.pop())
        return content

    monkeypatch.setattr(FileTree, "read", changing)
    assert texts(read_directory(policies, SourceBounds()))["policies/b.yaml"] == b"newer"
    changes += [b"%d" % number for number in range(100)]
    bundle = refused(policies, "RC506", "5 attempts")
    assert not bundle.policies
    assert len(changes) == 100 - 5 * 2


def test_a_link_put_in_place_of_a_listed_file_leads_nowhere(policies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Path("secret.yaml")
    secret.write_bytes(POLICY)
    really_read = FileTree.read

    def swapping(self: FileTree, found: BundleFile) -> bytes:
        Path("policies/base").rename("aside")
        Path("policies/base").symlink_to("..")
        Path("a.yaml").write_bytes(b"secret")
        return really_read(self, found)

    monkeypatch.setattr(FileTree, "read", swapping)
    bundle = read_directory(policies, SourceBounds())
    assert b"secret" not in texts(bundle).values()
    assert "RC502" in codes(bundle)
