"""Libraries in zip archives."""

import os
import stat
import struct
import zipfile
from pathlib import Path

import pytest

from servers.prompts.errors import PromptError
from servers.prompts.remote import cache, package
from servers.prompts.remote.address import Package
from servers.prompts.remote.cache import Checkout
from tests.servers.prompts.folders import SIMPLE
from tests.servers.prompts.remote.repositories import files, update
from tests.servers.prompts.serving import inside, names


def pack(path: Path, contents: dict[str, str | bytes], **options: int) -> Checkout:
    """Writes an archive with these files; returns it as a library with a cache next to it."""
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return Checkout(Package(path), path.parent / "cache")


def refusal(checkout: Checkout) -> str:
    with pytest.raises(PromptError):
        update(checkout)
    return checkout.failure


def left_out(checkout: Checkout) -> dict[str, str]:
    return {problem.path: problem.reason for problem in checkout.problems()}


def test_a_changed_archive_is_unpacked_again(tmp_path: Path) -> None:
    made = pack(
        tmp_path / "team.zip", {"a.md": "one", ".claude/commands/b.md": "two"}, compression=zipfile.ZIP_DEFLATED
    )
    assert update(made)
    assert files(made) == {"a.md": "one", ".claude/commands/b.md": "two"}
    assert made.root.name == "team"
    assert not update(made)
    pack(tmp_path / "team.zip", {"a.md": "newer"})
    assert update(made)
    assert files(made) == {"a.md": "newer"}


@pytest.mark.parametrize(
    ("paths", "unpacked"),
    [
        (["repo-main/commands/a.md", "repo-main/b.md"], ["b.md", "commands/a.md"]),
        (["commands/a.md", "commands/b.md"], ["commands/a.md", "commands/b.md"]),
        ([".claude/commands/a.md"], [".claude/commands/a.md"]),
        (["pdf/SKILL.md", "pdf/forms.md"], ["pdf/SKILL.md", "pdf/forms.md"]),
        (["pdf/skill.md", "pdf/forms.md"], ["pdf/forms.md", "pdf/skill.md"]),
        (["one/a.md", "b.md"], ["b.md", "one/a.md"]),
    ],
)
def test_a_folder_around_all_files_is_stripped(tmp_path: Path, paths: list[str], unpacked: list[str]) -> None:
    made = pack(tmp_path / "team.zip", dict.fromkeys(paths, "x"))
    update(made)
    assert sorted(files(made)) == unpacked


def test_hostile_names_and_links_are_reported(tmp_path: Path) -> None:
    hostile = ["../out.md", "/etc/x.md", "a/../../b.md", "C:/x.md", "nul.md", "back\\slash.md"]
    made = pack(tmp_path / "team.zip", {**dict.fromkeys(hostile, "x"), "good.md": "x"})
    with zipfile.ZipFile(tmp_path / "team.zip", "a") as archive:
        link = zipfile.ZipInfo("link.md")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("bzip.md", "x", zipfile.ZIP_BZIP2)
    update(made)
    assert list(files(made)) == ["good.md"]
    reasons = left_out(made)
    assert reasons["../out.md"] == "its path has an empty name, . or .. in it"
    assert reasons["link.md"] == "it is a link, and links are not followed"
    assert reasons["bzip.md"] == "its compression method is not supported"
    assert len(reasons) == len(hostile) + 2
    assert not list(tmp_path.rglob("out.md"))


def test_an_encrypted_file_is_reported(tmp_path: Path) -> None:
    made = pack(tmp_path / "team.zip", {"a.md": "one", "b.md": "two"})
    data = bytearray((tmp_path / "team.zip").read_bytes())
    at = data.index(b"PK\1\2")
    data[at + 8] |= 1
    (tmp_path / "team.zip").write_bytes(data)
    update(made)
    assert (list(files(made)), left_out(made)) == (["b.md"], {"a.md": "it is encrypted"})


def test_a_bomb_is_refused_by_its_declared_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_TOTAL_BYTES", 100_000)
    made = pack(tmp_path / "team.zip", {"a.txt": b"\0" * 100_001}, compression=zipfile.ZIP_DEFLATED)
    assert (tmp_path / "team.zip").stat().st_size < 1_000
    assert refusal(made) == "the files of the library have more than 100,000 bytes in total"


def test_a_file_larger_than_declared_is_damaged(tmp_path: Path) -> None:
    made = pack(tmp_path / "team.zip", {"a.txt": b"\0" * 100_000}, compression=zipfile.ZIP_DEFLATED)
    data = bytearray((tmp_path / "team.zip").read_bytes())
    for at, offset in ((data.index(b"PK\3\4"), 22), (data.index(b"PK\1\2"), 24)):
        struct.pack_into("<I", data, at + offset, 10)
    (tmp_path / "team.zip").write_bytes(data)
    assert refusal(made) == "the package is damaged at 'a.txt'"


def test_an_oversized_or_invalid_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "team.zip"
    made = pack(path, {"a.md": "one", "b.md": "two"})
    monkeypatch.setattr(package, "_MAX_DIRECTORY_BYTES", 60)
    assert refusal(made) == "the package has too many files"
    monkeypatch.setattr(package, "_MAX_DIRECTORY_BYTES", 1_000)
    monkeypatch.setattr(package, "_MAX_ARCHIVE_BYTES", 100)
    assert refusal(made) == "the file has more than 100 bytes"
    path.write_bytes(os.urandom(50))
    assert refusal(made) == "it is not a zip archive that can be read"
    path.unlink()
    assert refusal(made) == "there is no such file, or it can't be read"


async def test_prompts_of_an_archive_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pack(tmp_path / "team.zip", {"repo/commands/a.md": "Say a.", "repo/skills/b/SKILL.md": SIMPLE})
    async with inside(tmp_path / "team.zip") as peer:
        assert await names(peer) == ["a", "b"]
