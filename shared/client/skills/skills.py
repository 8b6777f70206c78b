"""The skills of a server, for a host that lists them, and reads a skill only when it is needed (the extension
io.modelcontextprotocol/skills, SEP-2640).

    skills = ServerSkills(client, origin="docs")
    for entry in await skills.list_skills():    # what to show; nothing is read yet
        ...
    skill = await skills.load(entry)            # reads and verifies SKILL.md
    guide = await skill.read("references/GUIDE.md")

A skill is untrusted text for a model. A host should show the origin of a skill, which is the host's own name for the
server; the same URI at another server is another skill. The host should ask the user before it loads a skill, grant
nothing that the front matter requests, such as `allowed-tools`, and run nothing because a skill says so. The user's
consent should be stored with the digest that `approval` returns.
"""

import hashlib
import json
import logging
import posixpath
from base64 import b64decode
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote, unquote

from pydantic import ValidationError

from ...errors import McpError
from ...protocol.types.base import locate_first_error
from ...protocol.types.content import TextResourceContents
from ...protocol.types.resources import Resource
from ...protocol.types.results import GetSkillResult, ListResourcesResult, ListSkillsResult, ReadResourceResult
from ...protocol.types.skills import DYNAMIC, MAX_BYTES, SKILLS, SkillEntry
from ...text import escape
from ..calls.pages import iter_pages, read_result
from ..client import Client
from .skill_checks import SkillRefused, check_entry, check_file, check_frontmatter, check_limits, is_inside, root_of

log = logging.getLogger("shared.client")


class ServerSkills:
    """The skills of one server. `origin` is the host's own name for the server. Every call raises the same errors as
    `Client.request`, InvalidResult for a malformed result, and McpError if the server does not declare the
    feature."""

    def __init__(self, client: Client, origin: str) -> None:
        self.origin = origin
        self._client = client

    @property
    def has_skills(self) -> bool:
        """True if the server has skills."""
        return self._client.server.can("extensions", SKILLS)

    async def list_skills(self) -> list[SkillEntry]:
        """Return all skills that the server lists. There may be others, which `get_skill` finds by their URIs."""
        return [entry async for entry in self.iter_skills()]

    async def iter_skills(self) -> AsyncIterator[SkillEntry]:
        """Iterate over the skills that the server lists; each page is requested when the previous one has been
        consumed. An entry that can't be loaded is omitted, with a warning in the log."""
        self._require("extensions", SKILLS)
        async for page in iter_pages(self._client.request, "skills/list", ListSkillsResult):
            for skill in page.skills:
                try:
                    yield _read_entry(skill)
                except SkillRefused as refusal:
                    log.warning("a skill of %r was skipped: %s", self.origin, escape(str(refusal)))

    async def get_skill(self, uri: str) -> SkillEntry:
        """Return the current entry of the skill whose SKILL.md is at `uri`, listed or not.

        Raises PeerError if the server has no such skill, and SkillRefused for an entry that can't be loaded.
        """
        self._require("extensions", SKILLS)
        result = await self._client.request("skills/get", {"uri": uri})
        entry = _read_entry(read_result("skills/get", GetSkillResult, result).skill)
        if entry.uri != uri:
            raise SkillRefused(uri, "entry", "the server returned a different skill")
        return entry

    async def load(self, entry: SkillEntry, *, dynamic: bool = False) -> "LoadedSkill":
        """Read and verify the SKILL.md of a skill; `dynamic` allows a skill without digests.

        Raises SkillRefused if the file does not match the entry, or if the skill exceeds the size that every host
        must support.
        """
        check_entry(entry)
        check_limits(entry)
        if entry.resources == DYNAMIC and not dynamic:
            raise SkillRefused(entry.uri, "dynamic", "its files have no digests to verify them with")
        skill = LoadedSkill(self._client, self.origin, entry)
        skill.text = (await skill.read(entry.uri)).decode("utf-8", "replace")
        check_frontmatter(entry, skill.text)
        return skill

    async def read_directory(self, uri: str) -> list[Resource]:
        """Return the resources that are now directly in a directory. If the entry of a skill lists its files, other
        files of the directory still can't be read."""
        self._require("extensions", SKILLS, "directoryRead")
        pages = iter_pages(self._client.request, "resources/directory/read", ListResourcesResult, {"uri": uri})
        return [resource async for page in pages for resource in page.resources]

    def approval(self, entry: SkillEntry) -> str | None:
        """Return a digest with which the user's consent to this skill can be stored: it changes if the server, the
        URI or any file changes. None if the skill's files have no digests, so that a consent can't be stored."""
        if entry.resources == DYNAMIC:
            return None
        files = sorted([file.uri, file.digest] for file in entry.resources)
        return hashlib.sha256(json.dumps([self.origin, entry.uri, files]).encode()).hexdigest()

    def _require(self, *path: str) -> None:
        if not self._client.server.can(*path):
            raise McpError(f"the server does not declare {' '.join(path)}")


class LoadedSkill:
    """A loaded skill with its entry. Only files of the entry can be read, and each is verified when it is read. After
    a file that does not match, nothing more can be read: load the skill again with a new entry."""

    def __init__(self, client: Client, origin: str, entry: SkillEntry) -> None:
        self.origin = origin
        """The host's name for the server, shown to the model with everything that is read."""
        self.entry = entry
        self.text = ""
        """The contents of SKILL.md."""
        self._client = client
        self._root = root_of(entry)
        listed = [] if entry.resources == DYNAMIC else entry.resources
        self._listed = {file.uri: file for file in listed}
        self._uris = {unquote(uri.removeprefix(f"{self._root}/")): uri for uri in self._listed}
        self._read: dict[str, bytes] = {}
        self._bytes_read = 0  # counted only if the entry lists no files
        self._refusal: SkillRefused | None = None

    @property
    def files(self) -> list[str]:
        """The paths of the listed files; empty if they are not listed."""
        return sorted(self._uris)

    async def read(self, file: str) -> bytes:
        """Return the contents of a file of the skill, given by its path in SKILL.md or by its URI. A listed file is
        fetched once.

        Raises SkillRefused for a file that is not part of the skill, and for a file that does not match its entry;
        after the latter, nothing more can be read. Raises the same errors as `Client.request`.
        """
        path = posixpath.normpath(file)
        uri = file if "://" in file else self._uris.get(path) or self._uris.get(unquote(path))
        uri = uri or f"{self._root}/{quote(path, errors='replace')}"
        if not (uri in self._listed if self._listed else is_inside(self._root, uri)):
            raise SkillRefused(uri, "unlisted", "it is not listed as a file of the skill")
        if uri in self._read:
            return self._read[uri]
        self._require_intact()
        # Not `read_resource`, because a cached result may be older than the entry, and would be refused every time.
        result = await self._client.request("resources/read", {"uri": uri})
        self._require_intact()
        try:
            data = _read_content(uri, read_result("resources/read", ReadResourceResult, result))
            if self._listed:
                check_file(self._listed[uri], data)
                self._read[uri] = data
            else:
                self._bytes_read += len(data)
                if self._bytes_read > MAX_BYTES:
                    raise SkillRefused(self.entry.uri, "limits", f"it has more than {MAX_BYTES:,} bytes")
        except SkillRefused as refusal:
            self._refusal = refusal
            raise
        return data

    def _require_intact(self) -> None:
        if self._refusal is not None:
            raise SkillRefused(self.entry.uri, self._refusal.check, f"no more of it will be read: {self._refusal}")


def _read_entry(skill: dict[str, Any]) -> SkillEntry:
    """Return the entry as a model. Raises SkillRefused for an entry that can't be loaded."""
    try:
        entry = SkillEntry.model_validate(skill)
    except ValidationError as error:
        path, fault = locate_first_error(error, skill)
        raise SkillRefused(str(skill.get("uri")), "entry", f"{path}: {fault}") from None
    check_entry(entry)
    return entry


def _read_content(uri: str, result: ReadResourceResult) -> bytes:
    """Return the contents of the file at `uri`. Raises SkillRefused if the result does not contain them."""
    matches = [content for content in result.contents if content.uri == uri]
    if len(matches) != 1:
        raise SkillRefused(uri, "contents", "the server answered without its content")
    (content,) = matches
    try:
        return (
            content.text.encode()
            if isinstance(content, TextResourceContents)
            else b64decode(content.blob, validate=True)
        )
    except ValueError:
        raise SkillRefused(uri, "contents", "the server returned content that can't be read") from None
