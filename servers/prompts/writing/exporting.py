"""Skills as directories: a new one appears with all its files at once."""

from collections.abc import Collection, Mapping

from servers.prompts.errors import PromptError
from servers.prompts.library.folder import Folder
from servers.prompts.library.forms import SKILL
from servers.prompts.writing.files import os_errors, put
from shared.kit.rooted.atomic import fresh_name, rename_to_free, sync_directory
from shared.kit.rooted.directories import entry_in
from shared.kit.rooted.entries import remove_tree

__all__ = ["differing", "write"]


def differing(folder: Folder, name: str, files: Mapping[str, bytes]) -> list[str]:
    """Which of the files of the skill are in the folder with something else in them. Other files don't count."""
    return [path for path, data in files.items() if _there(folder, name, path) and not _has(folder, name, path, data)]


def write(folder: Folder, name: str, files: Mapping[str, bytes], scripts: Collection[str] = ()) -> bool:
    """Writes a skill into the folder, where `scripts` may be executed; whether anything was to be written.

    Where there is no directory of that name one appears with all files in it. Otherwise each file that differs is
    replaced in one step, SKILL.md as the last, and other files stay. Raises PromptError: `not_written`, `changed`.
    """
    if not _there(folder, "", name):
        _write_new(folder, name, files, scripts)
        return True
    changed = [path for path, data in files.items() if not _has(folder, name, path, data)]
    for path in sorted(changed, key=lambda one: one == SKILL):
        put(folder, f"{name}/{path}", files[path], lambda _: None, path in scripts)
    return bool(changed)


def _write_new(folder: Folder, name: str, files: Mapping[str, bytes], scripts: Collection[str]) -> None:
    with os_errors(name), folder.opened([]) as directory:
        entry = entry_in(directory, name)
        part = fresh_name()
        fresh = entry_in(directory, part)
        try:
            for path, data in files.items():
                put(folder, f"{part}/{path}", data, lambda _: None, path in scripts)
            rename_to_free(fresh, entry)
        except PromptError as error:
            raise PromptError(error.code, error.reason.replace(part, name)) from None
        finally:
            # Where it has its name by now, nothing is left to take away.
            remove_tree(fresh)
        sync_directory(entry)


def _there(folder: Folder, above: str, path: str) -> bool:
    parent, _, name = f"{above}/{path}".rpartition("/")
    return any(one.path.rpartition("/")[2] == name for one in folder.children(parent))


def _has(folder: Folder, name: str, path: str, data: bytes) -> bool:
    try:
        return folder.read(f"{name}/{path}", len(data)) == data
    except PromptError:
        return False
