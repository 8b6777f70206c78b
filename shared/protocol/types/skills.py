"""Skills (the extension io.modelcontextprotocol/skills, SEP-2640): folders of instructions for a model, each file of
which is a resource."""

from typing import Any, Literal

from pydantic import Field

from .base import Integer, Items, Wire
from .resources import UriParams
from .tools import ListParams

SKILLS = "io.modelcontextprotocol/skills"
"""The extension's own name."""

MANIFEST = "SKILL.md"
"""The file that every skill has at its root."""

MAX_FILES, MAX_BYTES = 512, 16 * 1024 * 1024
"""Maximum numbers of files and of bytes of a skill that every host can load (Skills, Limits)."""

DIRECTORY = "inode/directory"
"""The media type of a directory."""

DYNAMIC: Literal["dynamic"] = "dynamic"
"""The value that replaces the files of a skill whose contents have no permanent digests."""


class DirectoryParams(UriParams, ListParams):
    """The directory to read."""


class SkillResource(Wire):
    """A file of a skill: `sha256:` followed by the digest of its bytes in lowercase hex, and its size in bytes."""

    uri: str
    digest: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    size: Integer = Field(ge=0)


class SkillEntry(Wire):
    """A skill as returned by `skills/list` and `skills/get`: the URI of its SKILL.md, that file's front matter, and
    all files."""

    uri: str
    frontmatter: dict[str, Any]
    resources: Items[SkillResource] | Literal["dynamic"]
