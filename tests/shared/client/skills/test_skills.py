"""`ServerSkills`: lists of skills, reads of files when needed, and refusals of files that differ from the list."""

import hashlib
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from shared.client.connect import connect
from shared.client.options import ClientOptions
from shared.client.skills.skill_checks import SkillRefused
from shared.client.skills.skills import ServerSkills
from shared.errors import InvalidResult, McpError
from shared.protocol.identity import Audience
from shared.protocol.methods import Method
from shared.protocol.types.base import Implementation
from shared.protocol.types.content import BlobResourceContents, TextResourceContents
from shared.protocol.types.resources import UriParams
from shared.protocol.types.skills import MAX_BYTES, DirectoryParams, SkillEntry, SkillResource
from shared.protocol.types.tools import ListParams
from shared.protocol.versions import V2026_07_28
from shared.server.extension import Capability, Extension
from shared.server.server import Server
from tests.servers.prompts.serving import folder
from tests.shared.client.small import Small

SKILLS = ("extensions", "io.modelcontextprotocol/skills")
URI = "skill://pdf/SKILL.md"
FORMS = "skill://pdf/refs/FORMS.md"
HEAD = {"name": "pdf", "description": "Handles PDF."}
MANIFEST = b"---\nname: pdf\ndescription: Handles PDF.\n---\n# PDF\n"


def listed(uri: str, data: bytes) -> dict[str, Any]:
    return {"uri": uri, "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data)}


ENTRY = {"uri": URI, "frontmatter": HEAD, "resources": [listed(URI, MANIFEST), listed(FORMS, b"\xffForms.")]}


class Shelf:
    """A server whose answers about skills a test sets, and the files that were read from it."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] | None = {"directoryRead": True}
        self.pages: dict[str | None, dict[str, Any]] = {None: {"skills": [ENTRY]}}
        self.entry: dict[str, Any] = ENTRY
        self.files = {URI: MANIFEST, FORMS: b"\xffForms."}
        self.answers_with: str | None = None
        self.blob: str | None = None
        self.reads: list[str] = []

    @asynccontextmanager
    async def skills(self) -> AsyncIterator[ServerSkills]:
        """Its skills, for a client of the newest version."""
        small = Small()
        small.app = Server(Implementation(name="shelf", version="1"), extensions=[self.extension()])
        async with small.connected(mode="stateless") as client:
            yield ServerSkills(client, "docs")

    def extension(self) -> Extension[Any]:
        """Its own answers to the methods of skills."""
        rows = {"skills/list": ListParams, "skills/get": UriParams, "resources/directory/read": DirectoryParams}
        extension = Extension[Any](
            SKILLS[1],
            methods=[Method(name, params, first=V2026_07_28, capability=SKILLS) for name, params in rows.items()],
            handlers=dict(zip(rows, (self.list, self.get, self.directory), strict=True)),
            declares=[Capability(SKILLS, lambda _running: self.settings, Audience(V2026_07_28))],
        )
        extension.resource("skill://{+path}", name="file")(self.read)
        return extension

    async def list(self, _running: object, _context: object, params: ListParams) -> dict[str, Any]:
        return self.pages[params.cursor]

    async def get(self, _running: object, _context: object, params: UriParams) -> dict[str, Any]:
        return {"skill": self.entry}

    async def directory(self, _running: object, _context: object, params: DirectoryParams) -> dict[str, Any]:
        if params.cursor:
            return {"resources": [{"uri": f"{params.uri}/b.md", "name": "b.md"}]}
        return {"resources": [{"uri": f"{params.uri}/a.md", "name": "a.md"}], "nextCursor": "more"}

    async def read(self, path: str) -> TextResourceContents | BlobResourceContents:
        """A file."""
        uri = f"skill://{path}"
        self.reads.append(uri)
        data, answered_uri = self.files[uri], self.answers_with or uri
        if self.blob is not None:
            return BlobResourceContents(uri=answered_uri, blob=self.blob)
        try:
            return TextResourceContents(uri=answered_uri, text=data.decode())
        except UnicodeDecodeError:
            return BlobResourceContents(uri=answered_uri, blob=b64encode(data).decode())


async def refused(awaitable: Any) -> str:
    """The check that failed."""
    with pytest.raises(SkillRefused) as refusal:
        await awaitable
    assert str(refusal.value) == f"{refusal.value.uri}: {refusal.value.reason}"
    return refusal.value.check


# Lists


async def test_listing_skills_reads_no_files() -> None:
    shelf = Shelf()
    async with shelf.skills() as skills:
        (entry,) = await skills.list_skills()
        assert (await skills.get_skill(URI), shelf.reads) == (entry, [])


async def test_iter_skills_requests_a_page_only_when_needed() -> None:
    shelf = Shelf()
    shelf.pages = {None: {"skills": [ENTRY], "nextCursor": "2"}, "2": {"skills": "none"}}
    async with shelf.skills() as skills:
        async for entry in skills.iter_skills():
            assert entry.uri == URI
            break
        with pytest.raises(InvalidResult) as wrong:
            await skills.list_skills()
        assert wrong.value.path == "skills"


@pytest.mark.parametrize(
    "wrong",
    [
        {"resources": None},
        {"resources": "static"},
        {"resources": []},
        {"resources": [{**listed(URI, MANIFEST), "digest": "md5:00"}]},
        {"resources": [{**listed(URI, MANIFEST), "size": -1}]},
        {"uri": "skill://other/SKILL.md"},
    ],
)
async def test_an_invalid_entry_is_skipped_and_logged(
    wrong: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    shelf = Shelf()
    shelf.entry = {**ENTRY, **wrong}
    shelf.pages = {None: {"skills": [shelf.entry, ENTRY]}}
    async with shelf.skills() as skills:
        assert [entry.uri for entry in await skills.list_skills()] == [URI]
        assert "a skill of 'docs' was skipped" in caplog.text
        assert await refused(skills.get_skill(URI)) == "entry"


async def test_a_server_without_skills_gets_no_requests() -> None:
    shelf = Shelf()
    shelf.settings = None
    async with shelf.skills() as skills:
        assert not skills.has_skills
        with pytest.raises(McpError, match="does not declare"):
            await skills.list_skills()
        with pytest.raises(McpError, match="does not declare"):
            await skills.get_skill(URI)


async def test_read_directory_returns_all_pages() -> None:
    shelf = Shelf()
    async with shelf.skills() as skills:
        assert [one.name for one in await skills.read_directory("skill://pdf/refs")] == ["a.md", "b.md"]


async def test_read_directory_requires_the_directory_read_setting() -> None:
    shelf = Shelf()
    shelf.settings = {}
    async with shelf.skills() as skills:
        assert skills.has_skills
        with pytest.raises(McpError, match="directoryRead"):
            await skills.read_directory("skill://pdf")


# Reading


async def test_a_file_is_read_once_and_only_when_needed() -> None:
    shelf = Shelf()
    async with shelf.skills() as skills:
        skill = await skills.load(await skills.get_skill(URI))
        assert (skill.origin, skill.text, shelf.reads) == ("docs", MANIFEST.decode(), [URI])
        assert skill.files == ["SKILL.md", "refs/FORMS.md"]
        for file in ("refs/FORMS.md", "./refs/../refs/FORMS.md", "refs/%46ORMS.md", FORMS):
            assert await skill.read(file) == b"\xffForms."
        assert shelf.reads == [URI, FORMS]


@pytest.mark.parametrize(
    ("data", "check"), [(MANIFEST + b"more", "size"), (MANIFEST.replace(b"# PDF", b"# EVI"), "digest")]
)
async def test_a_changed_manifest_is_not_loaded(data: bytes, check: str) -> None:
    shelf = Shelf()
    shelf.files[URI] = data
    async with shelf.skills() as skills:
        assert await refused(skills.load(await skills.get_skill(URI))) == check
        assert shelf.reads == [URI]


@pytest.mark.parametrize("resources", [ENTRY["resources"], "dynamic"], ids=["listed", "without digests"])
async def test_a_manifest_that_differs_from_its_entry_is_not_loaded(resources: object) -> None:
    shelf = Shelf()
    shelf.entry = {**ENTRY, "frontmatter": {**HEAD, "description": "Harmless."}, "resources": resources}
    async with shelf.skills() as skills:
        assert await refused(skills.load(await skills.get_skill(URI), dynamic=True)) == "frontmatter"


async def test_after_a_changed_file_no_more_files_are_read() -> None:
    shelf = Shelf()
    async with shelf.skills() as skills:
        skill = await skills.load(await skills.get_skill(URI))
        shelf.files[FORMS] = b"\xffEvil.."
        assert [await refused(skill.read(FORMS)) for _ in range(2)] == ["digest", "digest"]
        assert shelf.reads == [URI, FORMS]


async def test_a_changed_skill_is_loaded_by_its_new_entry() -> None:
    shelf = Shelf()
    async with shelf.skills() as skills:
        old = await skills.get_skill(URI)
        shelf.files[URI] = MANIFEST + b"More.\n"
        assert await refused(skills.load(old)) == "size"
        shelf.entry = {**ENTRY, "resources": [listed(URI, shelf.files[URI])]}
        new = await skills.get_skill(URI)
        assert (await skills.load(new)).text.endswith("More.\n")
        assert skills.approval(new) != skills.approval(old)


@pytest.mark.parametrize(
    "file", ["refs/MORE.md", "../other/SKILL.md", "/etc/passwd", "file:///etc/passwd", "", "..", "\ud800"]
)
async def test_an_unlisted_file_is_not_requested(file: str) -> None:
    shelf = Shelf()
    async with shelf.skills() as skills:
        skill = await skills.load(await skills.get_skill(URI))
        assert await refused(skill.read(file)) == "unlisted"
        assert shelf.reads == [URI]
        assert await skill.read(FORMS)


async def test_a_skill_with_an_invalid_entry_is_not_read() -> None:
    shelf = Shelf()
    async with shelf.skills() as skills:
        entry = await skills.get_skill(URI)
        outside = SkillResource.model_validate(listed("skill://other/a.md", b""))
        large = SkillResource(uri=FORMS, digest=outside.digest, size=MAX_BYTES)
        for file, check in ((outside, "entry"), (large, "limits")):
            more = entry.model_copy(update={"resources": [*entry.resources[:1], file]})
            assert await refused(skills.load(more)) == check
        assert shelf.reads == []


async def test_a_different_file_than_requested_is_refused() -> None:
    shelf = Shelf()
    shelf.answers_with = FORMS
    async with shelf.skills() as skills:
        assert await refused(skills.load(await skills.get_skill(URI))) == "contents"


async def test_a_different_entry_than_requested_is_refused() -> None:
    async with Shelf().skills() as skills:
        assert await refused(skills.get_skill("skill://team/pdf/SKILL.md")) == "entry"


# Skills without digests

DYNAMIC = {**ENTRY, "resources": "dynamic"}


async def test_a_skill_without_digests_is_loaded_only_if_allowed() -> None:
    shelf = Shelf()
    shelf.entry = DYNAMIC
    async with shelf.skills() as skills:
        entry = await skills.get_skill(URI)
        assert skills.approval(entry) is None
        assert await refused(skills.load(entry)) == "dynamic"
        skill = await skills.load(entry, dynamic=True)
        assert (skill.files, await skill.read("refs/FORMS.md")) == ([], b"\xffForms.")
        shelf.files[FORMS] = b"New."
        assert await skill.read("refs/FORMS.md") == b"New."


async def test_a_damaged_file_without_a_digest_is_refused() -> None:
    shelf = Shelf()
    shelf.entry = DYNAMIC
    async with shelf.skills() as skills:
        skill = await skills.load(await skills.get_skill(URI), dynamic=True)
        shelf.blob = "####"
        assert await refused(skill.read(FORMS)) == "contents"


@pytest.mark.parametrize("file", ["../other/SKILL.md", "/SKILL.md", "file:///etc/passwd", "skill://other/SKILL.md"])
async def test_a_skill_without_digests_has_only_files_of_its_directory(file: str) -> None:
    shelf = Shelf()
    shelf.entry = DYNAMIC
    async with shelf.skills() as skills:
        skill = await skills.load(await skills.get_skill(URI), dynamic=True)
        assert await refused(skill.read(file)) == "unlisted"
        assert shelf.reads == [URI]


@pytest.mark.slow
async def test_a_skill_without_digests_has_a_size_limit() -> None:
    shelf = Shelf()
    shelf.entry = DYNAMIC
    shelf.files[FORMS] = b"x" * (6 * 1024 * 1024)
    async with shelf.skills() as skills:
        skill = await skills.load(await skills.get_skill(URI), dynamic=True)
        await skill.read(FORMS)
        await skill.read(FORMS)
        assert await refused(skill.read(FORMS)) == "limits"


# Consent


def test_an_approval_depends_on_the_server_and_on_every_file() -> None:
    entry, fewer, turned = (
        SkillEntry.model_validate({**ENTRY, "resources": files})
        for files in (ENTRY["resources"], ENTRY["resources"][:1], ENTRY["resources"][::-1])
    )
    docs, other = (ServerSkills(None, origin) for origin in ("docs", "other"))  # type: ignore[arg-type]
    assert docs.approval(entry) == docs.approval(turned) != other.approval(entry)
    assert docs.approval(entry) != docs.approval(fewer)


# Real servers

PROMPTS = {
    "skills/pdf/SKILL.md": "---\nname: pdf\ndescription: Handles PDF.\nmetadata: {version: 1.5}\n---\nRun it.",
    "skills/pdf/refs/forms.md": "Forms.",
    "skills/pdf/a b.bin": b"\xff\0",
}


@pytest.mark.slow
async def test_the_skills_of_the_prompt_library_are_loaded(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "servers.prompts", str(folder(tmp_path / "lib", PROMPTS))]
    async with connect(command, ClientOptions(mode="stateless")) as client:
        skills = ServerSkills(client, "real")
        entry = (await skills.list_skills())[0]
        skill = await skills.load(entry)
        assert skill.text == PROMPTS["skills/pdf/SKILL.md"]
        assert [await skill.read(file) for file in ("a b.bin", "refs/forms.md")] == [b"\xff\0", b"Forms."]
        assert {one.name for one in await skills.read_directory(entry.uri.removesuffix("/SKILL.md"))}
