"""Skills (the extension io.modelcontextprotocol/skills, SEP-2640)."""

from typing import Any

from .base import Wire

__all__ = ["SkillEntry", "SkillResource"]


class SkillResource(Wire):
    """A file of a skill: `sha256:` and the digest of its bytes in lower-case hex, and how many bytes these are."""

    uri: str
    digest: str
    size: int


class SkillEntry(Wire):
    """A skill as `skills/list` and `skills/get` show it: the URI of its SKILL.md, what stands at the head of that
    file, and all its files."""

    uri: str
    frontmatter: dict[str, Any]
    resources: list[SkillResource]
