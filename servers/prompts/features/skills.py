"""The skills, as the protocol has them."""

from collections.abc import Sequence

from shared.errors import DeclarationError
from shared.extensions.skills import Skill, SkillFile

from ..library.skills import Bundle, SkillCache
from .context import Ctx


class LibrarySkills:
    """The prompts of the libraries as skills. A name or description that no skill can have leaves a prompt out."""

    async def list(self, context: Ctx) -> Sequence[Skill]:
        """The first ones."""
        skills = context.state.skills
        made = [_make_skill(skills, name, one) for name, one in (await skills.list()).items()]
        return [one for one in made if one is not None]

    async def get(self, context: Ctx, path: str) -> Skill | None:
        """The one whose prompt has this name."""
        skills = context.state.skills
        found = await skills.get(path)
        return None if found is None else _make_skill(skills, path, found)

    async def read(self, context: Ctx, skill: Skill, file: str) -> bytes | None:
        """A file, as long as it is the one that was promised."""
        return await context.state.skills.read(skill.path, file, skill.files[file].sha256)


def _make_skill(skills: SkillCache, name: str, bundle: Bundle) -> Skill | None:
    files = {path: SkillFile(one.size, one.sha256) for path, one in bundle.files.items()}
    try:
        return Skill(name, bundle.front, files)
    except DeclarationError as error:
        skills.refuse(name, str(error))
        return None
