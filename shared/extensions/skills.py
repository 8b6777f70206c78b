"""Skills: folders of instructions for a model, for example on how to use the server's tools (the extension
io.modelcontextprotocol/skills, SEP-2640).

    class Library:
        async def list(self, context): ...  # called for each request, so skills may be added and removed
        async def get(self, context, path): ...
        async def read(self, context, skill, file): ...

    server = Server(..., extensions=[skills(Library())])

Every file of a skill is a resource, `skill://<path of the skill>/<file>`, which clients of all versions can read.
Clients of 2026-07-28 can also list skills, with the digests of their files, and directories. Call
`changes.resources()` when a skill is added, removed or changed.

A name that a client sends is never used as a path of the file system: it is compared with the names of the skill's
files. A source is called only with well-formed paths of skills.
"""

import hashlib
import mimetypes
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter, methodcaller
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, unquote

from ..errors import DeclarationError, ResourceNotFound
from ..protocol.identity import Audience
from ..protocol.methods import Method
from ..protocol.pagination import page
from ..protocol.records import record
from ..protocol.types.content import BlobResourceContents, TextResourceContents
from ..protocol.types.resources import Resource, UriParams
from ..protocol.types.skills import (
    DIRECTORY,
    MANIFEST,
    MAX_BYTES,
    MAX_FILES,
    SKILLS,
    DirectoryParams,
    SkillEntry,
    SkillResource,
)
from ..protocol.types.tools import ListParams
from ..protocol.versions import V2026_07_28
from ..server.dispatch.context import Context
from ..server.extension import Capability, Extension
from ..server.run import Run
from ..text import join_lines

T = TypeVar("T")

MAX_DESCRIPTION, MAX_FILE_NAME = 1_024, 1_024
"""Maximum number of characters in a description, and in the name of a file."""
MAX_DEPTH = 32
"""Maximum number of names in a skill's path."""

_SCHEME = "skill://"
_PATH = re.compile(
    rf"(?:(?!\.\.?/)[A-Za-z0-9._~-]{{1,64}}/){{0,{MAX_DEPTH - 1}}}"  # the folders that contain the skill
    r"(?=[^/]{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*"  # the name of the skill
)
_FORBIDDEN_CHARACTERS = re.compile(r"[\\\x00-\x1f\x7f\ud800-\udfff]")
_MORE_TYPES = {".md": "text/markdown", ".yaml": "application/yaml", ".yml": "application/yaml"}
"""Media types that older Python versions do not know, by suffix."""


# Skills


@record
class SkillFile:
    """A file of a skill. `size` is the number of its bytes, and `sha256` their digest in lowercase hex."""

    size: int
    sha256: str

    @staticmethod
    def of(data: bytes) -> "SkillFile":
        """Return the file with these bytes."""
        return SkillFile(len(data), hashlib.sha256(data).hexdigest())


@record
class Skill:
    """One skill. Raises DeclarationError if it is invalid, or larger than what every host supports."""

    path: str
    """The path of the skill on the server, e.g. `review` or `team/review`. Its last part is the name: up to 64
    lowercase letters, digits, and single hyphens between them."""
    frontmatter: dict[str, Any]
    """The front matter of its SKILL.md, as JSON: the name, a description, and anything else."""
    files: Mapping[str, SkillFile]
    """All files of the skill by their paths in it, with slashes. They include SKILL.md, and nested skills."""

    def __post_init__(self) -> None:
        if not _PATH.fullmatch(self.path):
            raise DeclarationError(f"not a path of a skill: {self.path[:200]!r}")
        if self.frontmatter.get("name") != self.path.rpartition("/")[2]:
            raise DeclarationError(f"skill {self.path!r}: its front matter has another name")
        description = self.frontmatter.get("description")
        if not isinstance(description, str) or not 0 < len(description) <= MAX_DESCRIPTION:
            raise DeclarationError(f"skill {self.path!r} needs a description of up to {MAX_DESCRIPTION} characters")
        if MANIFEST not in self.files:
            raise DeclarationError(f"skill {self.path!r} has no {MANIFEST}")
        if len(self.files) > MAX_FILES or sum(file.size for file in self.files.values()) > MAX_BYTES:
            raise DeclarationError(f"skill {self.path!r} has more than {MAX_FILES} files or {MAX_BYTES:,} bytes")
        for name in self.files:
            if (
                len(name) > MAX_FILE_NAME
                or _FORBIDDEN_CHARACTERS.search(name)
                or not {"", ".", ".."}.isdisjoint(name.split("/"))
            ):
                raise DeclarationError(f"skill {self.path!r}: not a path of a file: {name[:200]!r}")

    def uri(self, file: str = MANIFEST) -> str:
        """Return the URI of one of the skill's files."""
        return f"{_SCHEME}{self.path}/{quote(file)}"

    def file_at(self, uri: str) -> str | None:
        """Return the path of the file whose URI is exactly `uri`; None if there is none."""
        file = unquote(uri.removeprefix(f"{_SCHEME}{self.path}/"))
        # Another spelling of the URI, e.g. with `%2e%2e`, is not the URI of any file, so nothing has to be resolved.
        return file if file in self.files and self.uri(file) == uri else None

    def entry(self) -> dict[str, Any]:
        """Return the entry of the skill for `skills/list` and `skills/get`."""
        resources = [
            SkillResource(uri=self.uri(name), digest=f"sha256:{file.sha256}", size=file.size)
            for name, file in self.files.items()
        ]
        return SkillEntry(uri=self.uri(), frontmatter=self.frontmatter, resources=resources).to_wire()

    def resource(self, file: str = MANIFEST) -> Resource:
        """Return a file as an entry for lists of resources."""
        size, mime_type = self.files[file].size, _mime_type(file)
        if file != MANIFEST:
            name = join_lines(file.rpartition("/")[2])
            return Resource(uri=self.uri(file), name=name, mime_type=mime_type, size=size)
        name, description = self.frontmatter["name"], join_lines(self.frontmatter["description"])
        return Resource(uri=self.uri(), name=name, description=description, mime_type=mime_type, size=size)

    def children(self, uri: str) -> list[Resource]:
        """Return the direct children of the directory `uri`. Empty if that is not a directory of the skill, since a
        directory always contains a file."""
        prefix, by_name = f"{uri}/", {}
        for file in sorted(self.files):
            _, is_inside, rest = self.uri(file).partition(prefix)
            if is_inside:
                child, is_directory, _ = rest.partition("/")
                directory = Resource(uri=prefix + child, name=join_lines(unquote(child)), mime_type=DIRECTORY)
                by_name[child] = directory if is_directory else self.resource(file)
        return list(by_name.values())


# The skills of a server


class SkillSource(Protocol):
    """The source of a server's skills. `context` is the context of the request; its `state` is the value that the
    lifespan yielded.

    The digests and sizes in a `Skill` must match the bytes that `read` returns. So a source should create the object
    once, not for each request.
    """

    async def list(self, context: Context[Any]) -> Sequence[Skill]:
        """Return the skills to list, always in the same order. Skills that are not in the list can still be read."""

    async def get(self, context: Context[Any], path: str) -> Skill | None:
        """Return the skill with that path, even if it is not listed; None if there is none."""

    async def read(self, context: Context[Any], skill: Skill, file: str) -> bytes | None:
        """Return the bytes of a file of `skill`; None if it no longer exists."""


class Skills:
    """The handlers of the extension, which serve the skills of `source`."""

    def __init__(self, source: SkillSource) -> None:
        self.source = source

    async def find(self, context: Context[Any], uri: str) -> Skill:
        """Return the skill whose SKILL.md has this URI. Raises ResourceNotFound if there is none."""
        path = uri.removeprefix(_SCHEME).removesuffix(f"/{MANIFEST}")
        skill = await self.source.get(context, path) if _PATH.fullmatch(path) else None
        if skill is None or skill.uri() != uri:
            raise ResourceNotFound(uri, "no skill has its SKILL.md at this URI")
        return skill

    async def children(self, context: Context[Any], uri: str) -> list[Resource]:
        """Return the direct children of the directory `uri` of a skill. Raises ResourceNotFound if there is none."""
        for path in _enclosing_paths(uri):
            skill = await self.source.get(context, path)
            if skill is not None and (children := skill.children(uri)):
                return children
        raise ResourceNotFound(uri, "no skill has a directory with this URI")

    async def list_resources(self, context: Context[Any]) -> list[Resource]:
        """Return an entry for the SKILL.md of each listed skill, for `resources/list`."""
        return [skill.resource() for skill in await self.source.list(context)]

    async def read(self, context: Context[Any], path: str) -> TextResourceContents | BlobResourceContents:
        """A file of a skill, whose SKILL.md describes its purpose."""
        uri = f"{_SCHEME}{path}"
        for skill_path in _enclosing_paths(uri):
            skill = await self.source.get(context, skill_path)
            if skill is None or (file := skill.file_at(uri)) is None:
                continue
            data = await self.source.read(context, skill, file)
            if data is None:
                continue
            try:
                return TextResourceContents(uri=uri, mime_type=_mime_type(file), text=data.decode())
            except UnicodeDecodeError:
                return BlobResourceContents.of(uri, data, _mime_type(file))
        raise ResourceNotFound(uri)

    # The methods

    async def list_skills(self, run: Run[Any], context: Context[Any], params: ListParams) -> dict[str, Any]:
        """Handle `skills/list`."""
        entries, cursor_field = _page_of(
            run, "skills", await self.source.list(context), methodcaller("uri"), params.cursor
        )
        return {"skills": [skill.entry() for skill in entries], **cursor_field}

    async def get_skill(self, run: Run[Any], context: Context[Any], params: UriParams) -> dict[str, Any]:
        """Handle `skills/get`, also for a skill that is not listed. Raises ResourceNotFound."""
        return {"skill": (await self.find(context, params.uri)).entry()}

    async def read_directory(self, run: Run[Any], context: Context[Any], params: DirectoryParams) -> dict[str, Any]:
        """Handle `resources/directory/read`, which lists the direct children of a directory. Raises
        ResourceNotFound."""
        children = await self.children(context, params.uri)
        entries, cursor_field = _page_of(run, f"directory:{params.uri}", children, attrgetter("uri"), params.cursor)
        return {"resources": [child.to_wire() for child in entries], **cursor_field}


def skills(source: SkillSource) -> Extension[Any]:
    """Return the extension that serves the skills of `source`."""
    skill_handlers, path = Skills(source), ("extensions", SKILLS)
    extension = Extension[Any](
        SKILLS,
        methods=(
            Method("skills/list", ListParams, first=V2026_07_28, capability=path, cacheable=True),
            Method("skills/get", UriParams, first=V2026_07_28, capability=path, cacheable=True),
            Method(
                "resources/directory/read", DirectoryParams, first=V2026_07_28, capability=(*path, "directoryRead")
            ),
        ),
        handlers={
            "skills/list": skill_handlers.list_skills,
            "skills/get": skill_handlers.get_skill,
            "resources/directory/read": skill_handlers.read_directory,
        },
        declares=[Capability(path, lambda _run: {"directoryRead": True}, Audience(V2026_07_28))],
    )
    extension.resource(f"{_SCHEME}{{+path}}", name="skill-file", title="File of a skill")(skill_handlers.read)
    extension.lists_resources(skill_handlers.list_resources)
    return extension


def _page_of(
    run: Run[Any], name: str, items: Sequence[T], key: Callable[[T], str], cursor: str | None
) -> tuple[Sequence[T], dict[str, str]]:
    """Return the page at `cursor` of a list, and the field of the result with the cursor of the next page."""
    size, signer = run.server.page_size, run.signer
    entries, next_cursor = page(items, cursor, key, name=name, size=size, signer=signer)
    return entries, {} if next_cursor is None else {"nextCursor": next_cursor}


def _enclosing_paths(uri: str) -> Iterator[str]:
    """Yield the paths that a skill which contains `uri` may have, the longest first."""
    if not uri.startswith(_SCHEME):
        return
    parts = uri.removeprefix(_SCHEME).split("/", MAX_DEPTH)
    # The longest first, because skills may be nested, and a file belongs to the innermost skill.
    for end in range(len(parts), 0, -1):
        path = "/".join(parts[:end])
        if _PATH.fullmatch(path):
            yield path


def _mime_type(file: str) -> str | None:
    extension = file.rpartition("/")[2].rpartition(".")[1:]
    return _mime_types().get("".join(extension).lower())


@cache
def _mime_types() -> dict[str, str]:
    # The tables of the operating system are not used, so that a file has the same type on every machine.
    return mimetypes.MimeTypes(filenames=()).types_map[True] | _MORE_TYPES
