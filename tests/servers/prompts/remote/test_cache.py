"""Libraries fetched from real repositories into a cache."""

import os
from pathlib import Path

import pytest

from servers.prompts.errors import PromptError
from servers.prompts.remote import cache, git
from servers.prompts.remote.address import parse_address
from servers.prompts.remote.cache import Checkout
from tests.servers.prompts.remote.repositories import Repository, daemon, entry, files, update

pytestmark = pytest.mark.slow


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "team.git", {"a.md": "one", "deep/b.md": "two", ".claude/commands/c.md": "three"})


def checkout(repository: Repository, rest: str = "") -> Checkout:
    return Checkout(repository.address(rest), repository.root.parent / "cache")


def refusal(made: Checkout, seconds: float = 60.0) -> str:
    with pytest.raises(PromptError) as raised:
        update(made, seconds)
    return made.failure or str(raised.value)


def test_each_new_commit_is_fetched(repository: Repository) -> None:
    made = checkout(repository)
    assert made.commit is None
    assert update(made)
    assert files(made) == {"a.md": "one", "deep/b.md": "two", ".claude/commands/c.md": "three"}
    assert made.commit == repository.git("rev-parse", "HEAD")
    assert not update(made)
    repository.git("rm", "--quiet", "a.md")
    commit = repository.commit({"d.md": "four"})
    assert update(made)
    assert (made.commit, sorted(files(made))) == (commit, [".claude/commands/c.md", "d.md", "deep/b.md"])


def test_branches_tags_commits_and_folders_are_checked_out(repository: Repository) -> None:
    old = repository.git("rev-parse", "HEAD")
    repository.git("tag", "light")
    repository.git("tag", "--annotate", "heavy", "--message=x")
    repository.commit({"a.md": "newer"})
    repository.git("branch", "light")  # a tag comes before a branch of its name, as in git
    for rest in ("@light", "@heavy", f"@{old}"):
        made = checkout(repository, rest)
        assert update(made)
        assert (made.commit, files(made)["a.md"]) == (old, "one"), rest
    inner = checkout(repository, "@main#subdirectory=deep")
    assert update(inner)
    assert files(inner) == {"b.md": "two"}
    assert inner.root.parts[-2:] == ("team", "deep")


def test_a_cached_commit_is_not_fetched_again(repository: Repository) -> None:
    made = checkout(repository, f"@{repository.git('rev-parse', 'HEAD')}")
    assert update(made)
    repository.root.rename(repository.root.with_name("gone"))
    assert not update(made)


def test_the_last_state_is_used_while_the_cache_is_read_again(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = checkout(repository)
    update(made)
    commit, commits, read_bytes = made.commit, list[str | None](), Path.read_bytes

    def read(path: Path) -> bytes:
        commits.append(made.commit)
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    made.load()
    assert commits == [commit]


def test_a_force_push_replaces_everything(repository: Repository) -> None:
    made = checkout(repository)
    update(made)
    repository.git("checkout", "--quiet", "--orphan", "other")
    repository.git("rm", "--quiet", "-r", "--force", ".")
    commit = repository.commit({"x.md": "new"})
    repository.git("branch", "--force", "main", commit)
    assert update(made)
    assert (made.commit, files(made)) == (commit, {"x.md": "new"})


def test_a_missing_revision_or_folder_keeps_the_cached_files(repository: Repository) -> None:
    assert refusal(checkout(repository, "@nowhere")) == "the repository has no branch or tag 'nowhere'"
    assert refusal(checkout(repository, f"@{'1' * 40}")) == "the repository has no such commit"
    assert refusal(checkout(repository, "#subdirectory=no")) == "the repository has no folder 'no'"
    assert refusal(checkout(repository, "#subdirectory=a.md")) == "the repository has no folder 'a.md'"
    made = checkout(repository)
    update(made)
    repository.root.rename(repository.root.with_name("gone"))
    assert refusal(made) == "there is no such repository"
    assert files(made)["a.md"] == "one"
    (problem,) = made.problems()
    commit = (made.commit or "")[:12]
    assert problem.reason == f"git+file:///.../team: there is no such repository; commit {commit} is served"


@pytest.mark.parametrize("damage", ["state", "text", "file", "tree"])
def test_a_damaged_cache_is_rebuilt(repository: Repository, damage: str) -> None:
    made = checkout(repository)
    update(made)
    tree = next(made._home.glob("tree"))
    if damage == "tree":
        tree.rename(tree.with_name("away"))
    elif damage == "file":
        (made.root / "a.md").write_text("longer than it was")
    else:
        (tree / "state.json").write_text("{}" if damage == "state" else "{")
    made.load()
    assert made.commit is None
    assert update(made)
    assert files(made)["a.md"] == "one"


def test_unusable_files_are_omitted_with_a_reason(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_BYTES", 1_000)
    os.symlink("/etc/passwd", repository.root / "link.md")
    repository.commit(
        {"large.md": "x" * 1_001, "lfs.md": "version https://git-lfs.github.com/spec/v1\noid sha256:1\n"}
    )
    commit = repository.git("rev-parse", "HEAD")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},module")
    repository.git("commit", "--quiet", "--message=module")
    made = checkout(repository)
    update(made)
    assert {one.path: one.reason for one in made.problems()} == {
        "large.md": "it has more than 1,000 bytes",
        "lfs.md": "its contents are in Git LFS, which is not fetched",
        "link.md": "it is a link, and links are not followed",
        "module": "it is a submodule, which is not fetched",
    }
    assert {"large.md", "lfs.md"}.isdisjoint(files(made))


def test_hostile_names_are_omitted(repository: Repository) -> None:
    blob = repository.git("hash-object", "-w", "--stdin", data=b"bad")
    inner = repository.git(
        "hash-object",
        "-t",
        "tree",
        "-w",
        "--literally",
        "--stdin",
        data=entry("100644", "x.md", blob).encode("latin-1"),
    )
    names = ["a.md", "back\\slash.md", "con.md", "dm.\u202eb.md", "new\nline.md", "st:ream.md"]
    entries = [
        entry("40000", "..", inner),
        *(entry("100644", name.encode().decode("latin-1"), blob) for name in names),
    ]
    repository.commit_tree("".join(sorted(entries)))
    made = checkout(repository)
    update(made)
    assert files(made) == {"a.md": "bad"}
    assert sorted(one.path for one in made.problems()) == ["../x.md", *names[1:]]
    assert not (made.root.parent / "x.md").exists()


def test_overlong_names_are_omitted(repository: Repository) -> None:
    blob = repository.git("hash-object", "-w", "--stdin", data=b"bad")
    name = "x" * 256
    repository.commit_tree("".join([entry("100644", "a.md", blob), entry("100644", name, blob)]))
    made = checkout(repository)
    update(made)
    assert files(made) == {"a.md": "bad"}
    assert [(one.path, one.reason) for one in made.problems()] == [(name, "its path is too long")]


def test_only_the_first_omitted_files_are_named(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MAX_LISTED", 1)
    for name in ("b", "c", "d"):
        os.symlink("a.md", repository.root / name)
    repository.commit({})
    made = checkout(repository)
    update(made)
    assert [(one.path, one.reason) for one in made.problems()] == [
        ("b", "it is a link, and links are not followed"),
        ("", "2 more files left out"),
    ]


def test_hooks_filters_and_attributes_have_no_effect(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    marker, home = repository.root.parent / "ran", repository.root.parent / "home"
    (home / "hooks").mkdir(parents=True)
    for hook in ("reference-transaction", "post-checkout", "post-index-change"):
        (home / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (home / "hooks" / hook).chmod(0o755)
    (home / ".gitconfig").write_text(
        f'[core]\n\thooksPath = {home}/hooks\n[filter "evil"]\n\tsmudge = touch {marker}\n\trequired = true\n'
    )
    repository.commit({".gitattributes": "*.md filter=evil export-subst ident\n", "s.md": "$Id$ $Format:%H$"})
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(home))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(home / "objects"))
    made = checkout(repository)
    assert update(made)
    assert files(made)["s.md"] == "$Id$ $Format:%H$"
    assert not marker.exists()
    assert sorted(path.name for path in home.iterdir()) == [".gitconfig", "hooks"]


def test_a_large_repository_is_refused(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit({"big.md": os.urandom(3_000_000)})
    monkeypatch.setattr(git, "MAX_FETCHED_BYTES", 1_000_000)
    assert refusal(checkout(repository)).startswith("the repository has more than 1 MB")
    monkeypatch.undo()
    monkeypatch.setattr(cache, "MAX_TOTAL_BYTES", 1_000_000)
    assert "more than 1,000,000 bytes in total" in refusal(checkout(repository))
    monkeypatch.undo()
    monkeypatch.setattr(cache, "_MAX_FILES", 2)
    assert "more than 2 files" in refusal(checkout(repository))
    assert [path.name for path in checkout(repository)._home.iterdir()] == []


def test_a_library_is_fetched_over_the_network_and_cached(repository: Repository) -> None:
    with daemon(repository.root.parent) as port:
        made = Checkout(parse_address(f"git+git://127.0.0.1:{port}/team.git"), repository.root.parent / "cache")
        assert update(made)
        nowhere = Checkout(parse_address(f"git+git://127.0.0.1:{port}/nowhere"), repository.root.parent / "cache")
        assert refusal(nowhere) in {"there is no such repository", "the repository can't be reached"}
    assert refusal(made) == "the repository can't be reached"
    assert files(made)["a.md"] == "one"


def test_a_hanging_git_is_terminated(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    bin_ = repository.root.parent / "bin"
    bin_.mkdir()
    (bin_ / "git").write_text("#!/bin/sh\nsleep 1000 & wait\n")
    (bin_ / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
    assert refusal(checkout(repository), seconds=0.2) == "git did not answer in time"


def test_a_missing_git_is_reported(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert refusal(checkout(repository)) == "git is not installed"
