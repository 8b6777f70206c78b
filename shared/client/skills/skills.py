"""The skills of a server, for a host: found out, and read no sooner than they are needed (the extension
io.modelcontextprotocol/skills, SEP-2640).

    skills = ServerSkills(client, origin="docs")
    for entry in await skills.list_skills():    # what to show; nothing is read yet
        ...
    skill = await skills.load(entry)            # reads and verifies SKILL.md
    guide = await skill.read("references/GUIDE.md")

What comes is a stranger's text for a model. A host shows where it is from, by the name that it gave the server; the
same URI at another server is another skill. It asks before it loads one, gives nothing that the front matter asks
for, `allowed-tools` for one, and runs nothing on its word. A consent is bound to `approval`.
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
from ...protocol.types.base import fault_at
from ...protocol.types.content import TextResourceContents
from ...protocol.types.resources import Resource
from ...protocol.types.results import GetSkillResult, ListResourcesResult, ListSkillsResult, ReadResourceResult
from ...protocol.types.skills import DYNAMIC, MAX_BYTES, SKILLS, SkillEntry
from ...text import escape
from ..calls.pages import iter_pages, read_result
from ..client import Client
from .skill_checks import SkillRefused, check_entry, check_file, check_head, check_limits, inside, root_of

log = logging.getLogger("shared.client")


class ServerSkills:
    """What one server offers. `origin` is the host's own name for it. Every call raises what `Client.request` does,
    InvalidResult for a result out of shape, and McpError where the server does not declare what is asked."""

    def __init__(self, client: Client, origin: str) -> None:
        self.origin = origin
        self._client = client

    @property
    def declared(self) -> bool:
        """Whether the server has skills at all."""
        return self._client.server.can("extensions", SKILLS)

    async def list_skills(self) -> list[SkillEntry]:
        """Every skill that the server lists. There may be more: one whose URI is known is found by `get_skill`."""
        return [entry async for entry in self.iter_skills()]

    async def iter_skills(self) -> AsyncIterator[SkillEntry]:
        """Every skill that the server lists; a page is asked for when the one before it has been taken. An entry that
        nobody could load is left out, with a warning in the log."""
        self._require("extensions", SKILLS)
        async for page in iter_pages(self._client.request, "skills/list", ListSkillsResult):
            for given in page.skills:
                try:
                    yield _entry(given)
                except SkillRefused as refusal:
                    log.warning("a skill of %r is left out: %s", self.origin, escape(str(refusal)))

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry of the skill whose SKILL.md is at `uri`, as it is now, listed or not.

        Raises PeerError where the server has none, and SkillRefused for an entry that nobody could load.
        """
        self._require("extensions", SKILLS)
        result = await self._client.request("skills/get", {"uri": uri})
        entry = _entry(read_result("skills/get", GetSkillResult, result).skill)
        if entry.uri != uri:
            raise SkillRefused(uri, "entry", "the server answered with another skill")
        return entry

    async def load(self, entry: SkillEntry, *, dynamic: bool = False) -> "LoadedSkill":
        """Reads and verifies the SKILL.md of a skill; `dynamic` allows one that has no digests to verify.

        Raises SkillRefused where it is not what the entry says, or larger than every host must support.
        """
        check_entry(entry)
        check_limits(entry)
        if entry.resources == DYNAMIC and not dynamic:
            raise SkillRefused(entry.uri, "dynamic", "its files have no digests by which to verify them")
        skill = LoadedSkill(self._client, self.origin, entry)
        skill.text = (await skill.read(entry.uri)).decode("utf-8", "replace")
        check_head(entry, skill.text)
        return skill

    async def read_directory(self, uri: str) -> list[Resource]:
        """What stands directly in a directory now. It adds nothing to what may be read of a skill whose files are
        listed: they are in its entry."""
        self._require("extensions", SKILLS, "directoryRead")
        pages = iter_pages(self._client.request, "resources/directory/read", ListResourcesResult, {"uri": uri})
        return [resource async for page in pages for resource in page.resources]

    def approval(self, entry: SkillEntry) -> str | None:
        """What a consent to this skill is bound to: another server, URI or file, or a changed one, make it another.
        None where the skill has no digests: a consent can't be kept then."""
        if entry.resources == DYNAMIC:
            return None
        files = sorted([one.uri, one.digest] for one in entry.resources)
        return hashlib.sha256(json.dumps([self.origin, entry.uri, files]).encode()).hexdigest()

    def _require(self, *path: str) -> None:
        if not self._client.server.can(*path):
            raise McpError(f"the server does not declare {' '.join(path)}")


class LoadedSkill:
    """A skill that a host acts on, with the entry it holds: only the files of that may be read, each verified when it
    comes. Once one was not what was listed, nothing more is read: load the skill anew, by a new entry."""

    def __init__(self, client: Client, origin: str, entry: SkillEntry) -> None:
        self.origin = origin
        """The host's name of the server, to be told to the model with whatever is read."""
        self.entry = entry
        self.text = ""
        """What is in SKILL.md."""
        self._client = client
        self._root = root_of(entry)
        listed = [] if entry.resources == DYNAMIC else entry.resources
        self._listed = {one.uri: one for one in listed}
        self._uris = {unquote(uri.removeprefix(f"{self._root}/")): uri for uri in self._listed}
        self._read: dict[str, bytes] = {}
        self._taken = 0  # bytes, where nothing is listed
        self._refusal: SkillRefused | None = None

    @property
    def files(self) -> list[str]:
        """The paths of its files; none where they are not listed."""
        return sorted(self._uris)

    async def read(self, file: str) -> bytes:
        """What is in a file of the skill, given by its path as SKILL.md refers to it, or by its URI. A listed file is
        fetched once.

        Raises SkillRefused for a file that is not the skill's, which costs nothing but this call, and for one that is
        not what was listed: with that the skill is done. Raises what `Client.request` does.
        """
        path = posixpath.normpath(file)
        uri = file if "://" in file else self._uris.get(path) or self._uris.get(unquote(path))
        uri = uri or f"{self._root}/{quote(path, errors='replace')}"
        if not (uri in self._listed if self._listed else inside(self._root, uri)):
            raise SkillRefused(uri, "unlisted", "it is not listed as a file of the skill")
        if uri in self._read:
            return self._read[uri]
        self._require_sound()
        # Not `read_resource`: what a cache holds may be older than the entry, and would be refused again and again.
        result = await self._client.request("resources/read", {"uri": uri})
        self._require_sound()
        try:
            data = _content(uri, read_result("resources/read", ReadResourceResult, result))
            self._verify(uri, data)
        except SkillRefused as refusal:
            self._refusal = refusal
            raise
        return data

    def _require_sound(self) -> None:
        if self._refusal is not None:
            raise SkillRefused(self.entry.uri, self._refusal.check, f"nothing more is read of it: {self._refusal}")

    def _verify(self, uri: str, data: bytes) -> None:
        if self._listed:
            check_file(self._listed[uri], data)
            self._read[uri] = data
            return
        self._taken += len(data)
        if self._taken > MAX_BYTES:
            raise SkillRefused(self.entry.uri, "limits", f"it has more than {MAX_BYTES:,} bytes")


def _entry(given: dict[str, Any]) -> SkillEntry:
    """Raises SkillRefused for what nobody could load."""
    try:
        entry = SkillEntry.model_validate(given)
    except ValidationError as error:
        place, fault = fault_at(error, given)
        raise SkillRefused(str(given.get("uri")), "entry", f"{place}: {fault}") from None
    check_entry(entry)
    return entry


def _content(uri: str, result: ReadResourceResult) -> bytes:
    """What is in the file at `uri`. Raises SkillRefused where the result does not hold it."""
    found = [one for one in result.contents if one.uri == uri]
    if len(found) != 1:
        raise SkillRefused(uri, "contents", "the server answered without its content")
    (one,) = found
    try:
        return one.text.encode() if isinstance(one, TextResourceContents) else b64decode(one.blob, validate=True)
    except ValueError:
        raise SkillRefused(uri, "contents", "the server answered with content that can't be read") from None
