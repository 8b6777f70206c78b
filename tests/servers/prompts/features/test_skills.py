"""Prompts and Agent Skills as skills through the protocol."""

import base64
import hashlib
import json
import os
from pathlib import Path

import pytest

from servers.prompts.format.front_matter import parse_document
from servers.prompts.library.libraries import Libraries
from servers.prompts.library.skills import SkillCache
from servers.prompts.library.snapshot import ScanChanges
from tests.servers.peers import Json, Peer
from tests.servers.prompts.folders import SIMPLE, asking, front, put, write
from tests.servers.prompts.serving import folder, following, inside, served, updates
from tests.wire import STATELESS

PDF = "---\nname: pdf\ndescription: Handles PDF.\nlicense: MIT\nmetadata: {version: 1.5}\n---\n# PDF\n\nRun it."
FILES: dict[str, str | bytes] = {
    "skills/pdf/SKILL.md": PDF,
    "skills/pdf/refs/forms.md": "Forms.",
    "skills/pdf/a b.bin": b"\xff\0",
    "ask.md": asking("About {{ topic }}{% include '_end.md' %}", "topic"),
    "_end.md": "!",
}


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    """Returns a library with a skill and a prompt."""
    return folder(tmp_path / "lib", FILES)


async def skills(peer: Peer) -> dict[str, Json]:
    """Returns the listed skills by name, in order."""
    listed = (await peer.request("skills/list"))["result"]["skills"]
    return {one["frontmatter"]["name"]: one for one in listed}


async def read(peer: Peer, uri: str) -> bytes:
    """Returns the bytes of a file."""
    (contents,) = (await peer.request("resources/read", uri=uri))["result"]["contents"]
    return base64.b64decode(contents["blob"]) if "blob" in contents else contents["text"].encode()


@pytest.mark.parametrize("file", ["SKILL.md", "skill.md"])
async def test_a_skill_is_served_unchanged_with_all_its_files(lib: Path, file: str) -> None:
    (lib / "skills/pdf/SKILL.md").rename(lib / "skills/pdf" / file)
    async with inside(lib, era=STATELESS) as peer:
        found = (await skills(peer))["pdf"]
        for one in found["resources"]:
            data = await read(peer, one["uri"])
            assert one["size"] == len(data)
            assert one["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        manifest = await read(peer, "skill://pdf/SKILL.md")
        listed = (await peer.request("resources/directory/read", uri="skill://pdf"))["result"]["resources"]
    assert manifest.decode() == PDF
    assert [one["name"] for one in listed] == ["pdf", "a b.bin", "refs"]
    assert found["frontmatter"] == {
        "name": "pdf",
        "description": "Handles PDF.",
        "license": "MIT",
        "metadata": {"version": 1.5},
    }
    uris = [one["uri"] for one in found["resources"]]
    assert uris == ["skill://pdf/SKILL.md", "skill://pdf/a%20b.bin", "skill://pdf/refs/forms.md"]


async def test_other_prompts_follow_as_generated_skills(lib: Path) -> None:
    async with inside(lib, era=STATELESS) as peer:
        assert list(await skills(peer)) == ["pdf", "ask"]
        found = (await peer.request("skills/get", uri="skill://ask/SKILL.md"))["result"]["skill"]
        assert found == (await skills(peer))["ask"]
        files = {one["uri"]: await read(peer, one["uri"]) for one in found["resources"]}
    assert list(files) == ["skill://ask/SKILL.md"]
    manifest = parse_document(files["skill://ask/SKILL.md"])
    assert manifest.front == found["frontmatter"]
    assert manifest.body.endswith("About [topic]!")
    assert "- [topic]: " in manifest.body


async def problems(peer: Peer) -> dict[str, str]:
    """Returns the problems of files by path, from the index."""
    found = json.loads(await read(peer, "prompt://"))["problems"]
    return {one["file"]: one["reason"] for one in found}


async def test_a_prompt_unusable_as_a_skill_is_omitted_and_reported(tmp_path: Path) -> None:
    files = {
        "Upper.md": SIMPLE,
        "long.md": f"---\ndescription: {'x' * 1_025}\n---\nSay it.",
        "broken.md": "",
        "missing.md": front(body="{% include 'x.md' %}"),
        "nameless/SKILL.md": "---\ndescription: Something.\n---\nSay it.",
        "endless/SKILL.md": "---\nname: endless\ndescription: Something.\nsize: 1e999\n---\nSay it.",
        "good.md": SIMPLE,
    }
    async with inside(folder(tmp_path / "lib", files), era=STATELESS) as peer:
        assert list(await skills(peer)) == ["good"]
        for name in ("Upper", "broken"):
            answer = await peer.request("skills/get", uri=f"skill://{name}/SKILL.md")
            assert answer["error"]["code"] == -32602
        reasons = await problems(peer)
    assert reasons["endless/SKILL.md"].startswith(
        "it is not a skill: the front matter has a value that can't be written"
    )
    assert reasons["nameless/SKILL.md"].startswith("it is not a skill: ")


async def test_files_beyond_the_limits_of_a_skill_are_omitted_and_reported(tmp_path: Path) -> None:
    files = {
        "many/SKILL.md": PDF.replace("pdf", "many"),
        **{f"many/{number:03}.txt": "" for number in range(512)},
        "large/SKILL.md": PDF.replace("pdf", "large"),
        "large/small.txt": "small" * 20,
    }
    lib = folder(tmp_path / "lib", files)
    for name, size in (("a.bin", 16 * 1024 * 1024 - 100), ("huge.bin", 16 * 1024 * 1024)):
        with (lib / "large" / name).open("wb") as file:
            file.truncate(size)
    async with inside(lib, era=STATELESS) as peer:
        found = {name: [one["uri"] for one in skill["resources"]] for name, skill in (await skills(peer)).items()}
        reasons = await problems(peer)
        assert "error" in await peer.request("resources/read", uri="skill://large/huge.bin")
    assert found["large"] == ["skill://large/SKILL.md", "skill://large/a.bin"]
    assert found["many"] == ["skill://many/SKILL.md", *(f"skill://many/{number:03}.txt" for number in range(511))]
    assert list(reasons) == ["large/huge.bin", "large/small.txt", "many/511.txt"]
    limit = "it is not part of the skill: a skill may have at most 512 files and 16,777,216 bytes"
    assert set(reasons.values()) == {limit}


@pytest.mark.slow
async def test_an_omitted_skill_file_is_logged_at_startup(tmp_path: Path) -> None:
    lib = folder(tmp_path / "lib", {"large/SKILL.md": PDF.replace("pdf", "large")})
    with (lib / "large/huge.bin").open("wb") as file:
        file.truncate(16 * 1024 * 1024 + 1)
    async with served(lib, era=STATELESS) as peer:
        await skills(peer)
        assert "large/huge.bin: it is not part of the skill" in peer.wire.stderr


async def test_links_and_hidden_files_are_omitted_from_a_skill(tmp_path: Path, lib: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (lib / "skills/pdf/link.txt").symlink_to(tmp_path / "secret.txt")
    (lib / "skills/pdf/linked").symlink_to(tmp_path)
    folder(lib / "skills/pdf", {".env": "secret", ".git/config": "secret"})
    os.mkfifo(lib / "skills/pdf/pipe")
    async with inside(lib, era=STATELESS) as peer:
        assert len((await skills(peer))["pdf"]["resources"]) == 3
        reasons = await problems(peer)
        assert reasons["skills/pdf/pipe"] == "it is not a file, but a pipe, a socket or a device"
        assert (
            reasons["skills/pdf/link.txt"]
            == "it is a link, and links are not followed: pass its target as a separate DIR"
        )
        for path in ("link.txt", "linked/secret.txt", ".env", ".git/config", "../../ask.md", "pipe"):
            answer = await peer.request("resources/read", uri=f"skill://pdf/{path}")
            assert answer["error"]["code"] == -32602


async def test_a_changed_skill_file_is_not_served_under_an_old_digest(lib: Path) -> None:
    libraries = Libraries([lib])
    libraries.scan()
    shelf = SkillCache(libraries)
    for name, file, path in (("pdf", "refs/forms.md", "skills/pdf/refs/forms.md"), ("ask", "SKILL.md", "_end.md")):
        before = await shelf.get(name)
        assert before is not None
        write(lib, {path: "Other."})
        if name == "pdf":
            assert await shelf.read(name, file, before.files[file].sha256) is None
        libraries.scan()
        assert await shelf.read(name, file, before.files[file].sha256) is None
        shelf.forget(ScanChanges(frozenset(), other_files_changed=True))
        after = await shelf.get(name)
        assert after is not None
        read = await shelf.read(name, file, after.files[file].sha256)
        assert read is not None
        assert read.rstrip().endswith(b"Other.")


async def test_a_changed_skill_sends_updates_and_has_new_digests(lib: Path) -> None:
    manifest, forms = "skill://pdf/SKILL.md", "skill://pdf/refs/forms.md"
    async with following(STATELESS, lib, manifest) as follower:
        updated = updates(follower)
        before = await skills(follower.peer)
        put(lib, {"skills/pdf/refs/forms.md": "Other forms."})
        assert await anext(updated) == manifest
        after = await skills(follower.peer)
        assert await read(follower.peer, forms) == b"Other forms."
        assert before["pdf"] != after["pdf"]
        put(lib, {"skills/pdf/SKILL.md": PDF + " Again."})
        assert await anext(updated) == manifest
        assert await read(follower.peer, manifest) == f"{PDF} Again.".encode()
