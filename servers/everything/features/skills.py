"""A skill that shows how to check a client against this server, in the folder `try-a-client` of this server."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from anyio import to_thread

from shared.extensions.skills import Skill, SkillFile

from . import Ctx

FRONTMATTER = {  # the same as in SKILL.md
    "name": "try-a-client",
    "description": "Check an MCP client or host against this server, feature by feature, and report what it does "
    "wrong. Use it to test a client that is being written, or to find out which features a host has.",
}
FOLDER = Path(__file__).parents[1] / FRONTMATTER["name"]
FILES = ("SKILL.md", "references/CHECKS.md")


class Guide:
    """Offers the skill, whose files are read when a client first requests them."""

    async def list(self, context: Ctx) -> Sequence[Skill]:
        """Return the only skill."""
        return [await to_thread.run_sync(_skill)]

    async def get(self, context: Ctx, path: str) -> Skill | None:
        """Return the skill if `path` is its name."""
        return await to_thread.run_sync(_skill) if path == FRONTMATTER["name"] else None

    async def read(self, context: Ctx, skill: Skill, file: str) -> bytes:
        """Return one of its files."""
        return _files()[file]


@cache
def _files() -> dict[str, bytes]:
    return {name: (FOLDER / name).read_bytes() for name in FILES}


@cache
def _skill() -> Skill:
    files = {name: SkillFile.of(data) for name, data in _files().items()}
    return Skill(FRONTMATTER["name"], dict(FRONTMATTER), files)
