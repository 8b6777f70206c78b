"""Offers the prompts of the libraries as skills of the protocol extension."""

from collections.abc import Sequence

from shared.errors import DeclarationError
from shared.extensions.skills import Skill, SkillFile

from ..library.skills import BuiltSkill, SkillCache
from .context import Ctx


class LibrarySkills:
    """Provides the prompts of the libraries as skills, except those whose name or description a skill can't have."""

    async def list(self, context: Ctx) -> Sequence[Skill]:
        """Return the first skills."""
        skills = context.state.skills
        candidates = [_make_skill(skills, name, item) for name, item in (await skills.list()).items()]
        return [item for item in candidates if item is not None]

    async def get(self, context: Ctx, path: str) -> Skill | None:
        """Return the skill of the prompt with this name; None if it is not a skill."""
        skills = context.state.skills
        built_skill = await skills.get(path)
        return None if built_skill is None else _make_skill(skills, path, built_skill)

    async def read(self, context: Ctx, skill: Skill, file: str) -> bytes | None:
        """Return the contents of a file of the skill; None if the hash is no longer the listed one."""
        return await context.state.skills.read(skill.path, file, skill.files[file].sha256)


def _make_skill(skills: SkillCache, name: str, built_skill: BuiltSkill) -> Skill | None:
    files = {path: SkillFile(digest.size, digest.sha256) for path, digest in built_skill.files.items()}
    try:
        return Skill(name, built_skill.front, files)
    except DeclarationError as error:
        skills.report_invalid(name, str(error))
        return None
