"""Skills (the extension io.modelcontextprotocol/skills, SEP-2640). A skill is a folder of instructions for a model,
whose files are resources."""

from typing import Any, Literal

from pydantic import Field

from .base import Integer, Items, Wire
from .resources import UriParams
from .tools import ListParams

SKILLS = "io.modelcontextprotocol/skills"
"""The identifier of the extension."""

MANIFEST = "SKILL.md"
"""The file that every skill has at its root."""

MAX_FILES, MAX_BYTES = 512, 16 * 1024 * 1024
"""Maximum number of files, and of their bytes, of a skill that every host has to support (Skills, Limits)."""

DIRECTORY = "inode/directory"
"""The media type of a directory."""

DYNAMIC: Literal["dynamic"] = "dynamic"
"""The value of `resources` for a skill whose files change, so that it can't list their digests."""


class DirectoryParams(UriParams, ListParams):
    """The params of a request to list a directory."""


class SkillResource(Wire):
    """A file of a skill. `digest` is `sha256:` and the lowercase hex digest of its bytes, `size` their number."""

    uri: str
    digest: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    size: Integer = Field(ge=0)


class SkillEntry(Wire):
    """A skill as returned by `skills/list` and `skills/get`: the URI of its SKILL.md, the front matter of that file,
    and all its files."""

    uri: str
    frontmatter: dict[str, Any]
    resources: Items[SkillResource] | Literal["dynamic"]
