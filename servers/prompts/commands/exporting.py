"""`export`: prompts as skills."""

from collections.abc import Sequence
from pathlib import Path

from servers.prompts.commands.output import Misuse, counted, failed, opened, say
from servers.prompts.errors import PromptError
from servers.prompts.library.folder import Folder
from servers.prompts.library.library import Library
from servers.prompts.writing.exporting import differing, write

__all__ = ["export"]


def export(root: Path, names: Sequence[str] | None, target: Path, force: bool) -> int:
    """Writes the prompts of these names (None: all) as directories in `target`.

    1 where one can't be a skill, or would replace what differs: then none is written. Raises Misuse.
    """
    library = opened(root)
    skills = _skills(library, _chosen(library, names), root)
    if skills is None:
        return 1
    _make(target)
    folder = Folder(target)
    old = [f"{name}/{path}" for name, files in skills.items() for path in differing(folder, name, files)]
    if old and not force:
        for path in old:
            say(f"{target / path}: there is another file already (--force replaces it)")
        return 1
    try:
        written = [name for name, files in skills.items() if write(folder, name, files, library.scripts(name))]
    except PromptError as error:
        failed(target, "", error)
        return 1
    for name in written:
        say(f"{target / name}")
    say(f"{counted(len(written), 'skill')} written, {len(skills) - len(written)} unchanged")
    return 0


def _chosen(library: Library, names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
        return library.names
    unknown = [one for one in names if one not in library]
    if unknown or not names:
        raise Misuse(f"there is no prompt {unknown[0]!r}" if unknown else "name a prompt, or say --all")
    return list(dict.fromkeys(names))


def _skills(library: Library, names: Sequence[str], root: Path) -> dict[str, dict[str, bytes]] | None:
    found: dict[str, dict[str, bytes]] = {}
    broken = False
    for name in names:
        try:
            found[name] = library.export(name)
        except PromptError as error:
            failed(root, library.path(name), error)
            broken = True
    return None if broken else found


def _make(target: Path) -> None:
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise Misuse(f"{target} is no directory, and can't be made one") from None
