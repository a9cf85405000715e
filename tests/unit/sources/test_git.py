"""Revisions of repositories on disk: what was committed is what is read, whatever lies around it."""

import os
import shutil
from pathlib import Path

import pytest

from reconciler.sources.git import GitPlace, read_revision
from reconciler.sources.walk import SourceBounds
from tests.unit.sources.stage import LINK, POLICY, SUBMODULE, Repository, codes, put_first, read, sentences, texts

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 5\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "policies.git")


def test_fifty_revisions_are_read_exactly_as_they_were_written(repository: Repository) -> None:
    history = [
        {
            f"policies/{name}/{number}.yaml": f"revision: {number}\nof: {name}\r\n\0\xff".encode("latin-1")
            for name in ("base", "overlays/prod", f"only-{number}")
        }
        for number in range(50)
    ]
    commits = repository.commits(history)
    assert len(set(commits)) == 50
    for commit, written in zip(commits, history, strict=True):
        bundle = read(repository.folder, commit)
        assert bundle.revision == commit
        assert texts(bundle) == written
        assert [text.path for text in bundle.policies] == sorted(written)
        assert not bundle.problems


def test_branches_tags_and_steps_name_commits(repository: Repository) -> None:
    first, second = repository.commits([{"policies/a.yaml": b"1"}, {"policies/a.yaml": b"2"}])
    repository.git("tag", "--annotate", "--message", "", "v1", first)
    for revision, commit in (("main", second), ("HEAD", second), ("v1", first), ("main~1", first), (first[:8], first)):
        assert read(repository.folder, revision).revision == commit


def test_templates_are_read_in_and_beside_the_path(repository: Repository) -> None:
    repository.commit(
        {
            "policies/a.yaml": POLICY,
            "policies/.hidden.yaml": POLICY,
            "policies/kustomization.yaml": b"resources: [a.yaml]",
            "policies/notes.md": b"",
            "policies/templates/pod.yaml.j2": b"inside",
            "policies/templates/no-policy.yaml": b"",
            "templates/aws/pool.yaml.j2": b"beside",
            "elsewhere/b.yaml": POLICY,
        }
    )
    bundle = read(repository.folder)
    assert list(texts(bundle)) == ["policies/a.yaml"]
    assert [(one.path, one.content) for one in bundle.templates] == [
        ("aws/pool.yaml.j2", b"beside"),
        ("pod.yaml.j2", b"inside"),
    ]
    assert list(texts(read(repository.folder, path=""))) == ["elsewhere/b.yaml", "policies/a.yaml"]
    assert list(texts(read(repository.folder, path="policies/a.yaml"))) == ["policies/a.yaml"]


def test_what_is_checked_out_changes_nothing(repository: Repository, tmp_path: Path) -> None:
    commit = repository.commit({"policies/a.yaml": POLICY, "policies/b.yaml": POLICY})
    tree = repository.work_tree(tmp_path / "tree")
    clean = read(tree)
    (tree / "policies" / "a.yaml").write_bytes(b"changed")
    (tree / "policies" / "new.yaml").write_bytes(b"new")
    repository.git("rm", "--quiet", "policies/b.yaml", cwd=tree)
    repository.git("checkout", "--quiet", "-b", "other", cwd=tree)
    (tree / ".git" / "index").write_bytes(b"broken")
    assert read(tree) == clean == read(repository.folder)
    assert clean.revision == commit


def test_a_linked_work_tree_is_a_repository(repository: Repository, tmp_path: Path) -> None:
    commit = repository.commit({"policies/a.yaml": POLICY})
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"), "main")
    assert read(tmp_path / "linked").revision == commit


def test_a_repository_of_another_user_is_read(repository: Repository) -> None:
    commit = repository.commit({"policies/a.yaml": POLICY})
    if os.geteuid() == 0:
        os.chown(repository.folder, 12_345, 12_345)
    assert read(repository.folder).revision == commit


def test_what_a_hook_inherits_does_not_mislead(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = repository.commit({"policies/a.yaml": POLICY})
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.bare'='maybe'")
    assert read(repository.folder).revision == commit


def test_links_within_the_path_are_followed_in_the_commit(repository: Repository) -> None:
    repository.commit(
        {
            "policies/base/a.yaml": POLICY,
            "policies/b.yaml": (LINK, b"base/a.yaml"),
            "policies/again": (LINK, b"./base/../base"),
            "policies/base/up": (LINK, b".."),
        }
    )
    bundle = read(repository.folder)
    assert list(texts(bundle)) == ["policies/again/a.yaml", "policies/b.yaml", "policies/base/a.yaml"]
    assert not bundle.problems


@pytest.mark.parametrize("target", [b"/etc/passwd", b"../secret.yaml", b"../../../etc/passwd", b"../other/x.yaml"])
def test_links_out_of_the_path_are_refused(repository: Repository, target: bytes) -> None:
    repository.commit({"policies/out.yaml": (LINK, target), "secret.yaml": b"secret", "other/x.yaml": b"secret"})
    bundle = read(repository.folder)
    assert codes(bundle) == ["RC502"]
    assert target.decode() in sentences(bundle)
    assert not bundle.policies


def test_links_in_circles_and_to_nothing_are_problems(repository: Repository) -> None:
    repository.commit(
        {
            "policies/a.yaml": (LINK, b"b.yaml"),
            "policies/b.yaml": (LINK, b"a.yaml"),
            "policies/c.yaml": (LINK, b"nothing"),
            "policies/d.yaml": (LINK, b"x" * 10_000),
        }
    )
    assert codes(read(repository.folder)) == ["RC501"] * 4


def test_submodules_and_pointers_to_large_files_are_problems(repository: Repository) -> None:
    repository.commit(
        {
            "policies/module": (SUBMODULE, b"1" * 40),
            "policies/lfs.yaml": POINTER,
            "policies/a.yaml": POLICY,
            ".gitattributes": b"*.yaml filter=lfs diff=lfs merge=lfs -text\n",
        }
    )
    bundle = read(repository.folder)
    assert codes(bundle) == ["RC513", "RC513"]
    assert "policies/module: is a submodule" in sentences(bundle)
    assert "policies/lfs.yaml: is kept in Git LFS" in sentences(bundle)
    assert list(texts(bundle)) == ["policies/a.yaml"]


def test_bounds_hold_for_what_is_committed(repository: Repository) -> None:
    repository.commit({f"policies/{number}.yaml": POLICY for number in range(3_000)})
    assert "3,000 files" in sentences(read(repository.folder))
    repository.commit({"policies/big.yaml": b"x" * (1 << 21), "policies/a.yaml": POLICY})
    assert "policies/big.yaml: the file has 2,097,152 bytes" in sentences(read(repository.folder))
    repository.commit({"policies/" + "d/" * 40 + "x.yaml": POLICY})
    assert "17 folders deep" in sentences(read(repository.folder))
    bundle = read_revision(GitPlace(str(repository.folder), "main"), SourceBounds(entries=3))
    assert codes(bundle) == ["RC504"]
    assert not bundle.policies


def test_paths_without_end_are_ended(repository: Repository) -> None:
    repository.commit({"policies/" + "d/" * 400 + "x.yaml": POLICY, "policies/a.yaml": (LINK, b"d/" * 300)})
    assert set(codes(read(repository.folder))) == {"RC504"}
    loops: dict[str, bytes | tuple[str, bytes]] = {
        f"policies/{number}.yaml": (LINK, b"d/../" * 200 + b"%d.yaml" % (number + 1)) for number in range(300)
    }
    repository.commit({**loops, "policies/d/a.yaml": POLICY})
    assert set(codes(read(repository.folder))) == {"RC501"}


def test_names_that_cannot_be_shown_are_refused(repository: Repository) -> None:
    long = "policies/" + "x" * 10_000 + ".yaml"
    names = (r"policies/\377.yaml", r"policies/a\nb.yaml", r"policies/\033[2J.txt", long)
    repository.commit(dict.fromkeys(names, POLICY))
    bundle = read(repository.folder)
    assert codes(bundle) == ["RC505", "RC505", "RC505"]
    assert len(sentences(bundle)) < 2_000
    assert r"policies/\xff.yaml" in sentences(bundle)


@pytest.mark.parametrize(
    ("revision", "path", "code"),
    [
        ("none", "policies", "RC512"),
        ("--output=F", "policies", "RC512"),
        ("main:policies", "policies", "RC512"),
        ("0" * 40, "policies", "RC512"),
        ("main", "polices", "RC501"),
        ("main", "../policies", "RC501"),
        ("main", "/policies", "RC501"),
    ],
)
def test_what_is_not_there_is_a_problem(repository: Repository, revision: str, path: str, code: str) -> None:
    repository.commit({"policies/a.yaml": POLICY})
    bundle = read(repository.folder, revision, path)
    assert codes(bundle) == [code]
    assert bundle.problems[0].remedy
    assert (bundle.revision, bundle.policies) == ("", ())


def test_a_folder_that_is_no_repository_is_a_problem(tmp_path: Path) -> None:
    bundle = read(tmp_path)
    assert codes(bundle) == ["RC515"]
    assert "is not a Git repository" in sentences(bundle)


def test_a_damaged_repository_is_a_problem(repository: Repository) -> None:
    repository.commit({"policies/a.yaml": POLICY, "policies/b.yaml": b"b"})
    blob = repository.git("rev-parse", "main:policies/a.yaml")
    (repository.folder / "objects" / blob[:2] / blob[2:]).unlink()
    bundle = read(repository.folder)
    assert codes(bundle) == ["RC501"]
    assert "policies/a.yaml: the path cannot be read: the repository is damaged" in sentences(bundle)
    tree = repository.git("rev-parse", "main:policies")
    (repository.folder / "objects" / tree[:2] / tree[2:]).unlink()
    assert codes(read(repository.folder)) == ["RC515"]


def test_without_git_there_is_a_remedy(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    bundle = read(repository.folder)
    assert codes(bundle) == ["RC515"]
    assert "install git" in sentences(bundle)


def test_no_process_is_left_and_no_argument_is_taken_for_an_option(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    git = shutil.which("git")
    script = f'#!/bin/sh\necho $$ >>{tmp_path}/pids\nprintf "%s\\n" "$*" >>{log}\nexec {git} "$@"\n'
    repository.commit({"policies/a.yaml": POLICY})
    (repository.folder / "objects" / "info" / "alternates").touch()  # so that git reads, in a process
    put_first(monkeypatch, tmp_path / "bin", "git", script)
    commit = read(repository.folder).revision
    assert log.read_text().splitlines() == [
        "rev-parse --verify --end-of-options main^{commit}",
        f"ls-tree -r -l -z --full-tree --end-of-options {commit} policies templates",
        "cat-file --batch",
    ]
    for pid in (tmp_path / "pids").read_text().split():
        assert not Path("/proc", pid).exists()
