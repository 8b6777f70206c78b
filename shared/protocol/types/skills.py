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
"""The numbers of files and bytes of one skill that every host can load (Skills, Limits)."""

DIRECTORY = "inode/directory"
"""The media type of a directory."""

DYNAMIC: Literal["dynamic"] = "dynamic"
"""The value instead of the files of a skill whose content has no lasting digests."""


class DirectoryParams(UriParams, ListParams):
    """The directory to read."""


class SkillResource(Wire):
    """A file of a skill: `sha256:` and the digest of its bytes in lower-case hex, and their number."""

    uri: str
    digest: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    size: Integer = Field(ge=0)


class SkillEntry(Wire):
    """A skill as `skills/list` and `skills/get` show it: the URI of its SKILL.md, the front matter of that file, and
    all its files."""

    uri: str
    frontmatter: dict[str, Any]
    resources: Items[SkillResource] | Literal["dynamic"]
