"""What a file of a library is, by its path, and how each form is read."""

import re
from typing import Literal, NamedTuple

from servers.prompts.format.commands import parse_command
from servers.prompts.format.definitions import Prompt
from servers.prompts.format.front_matter import parse_document
from servers.prompts.format.prompts import parse_prompt
from servers.prompts.format.skills import parse_skill

SKILL = "SKILL.md"
_README = "README.md"
_COMMANDS = (".claude", "commands")
_FRONT = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_PLAIN_NAME = re.compile(rb"^name:[ \t]+([A-Za-z][A-Za-z0-9_-]*)[ \t]*\r?$", re.MULTILINE)
_OTHER_NAME = re.compile(rb"^(?:name\b|[^a-z \t\r\n#-])", re.MULTILINE)


class Kind(NamedTuple):
    """What a file is."""

    form: Literal["prompt", "command", "skill"]
    name: str
    """Of the prompt, unless its front matter has another."""
    base: str
    """See `Prompt.base`."""


def find_kind(path: str, root: tuple[str, ...], skills: frozenset[str]) -> Kind | None:
    """What the file at `path` in the library at `root` is; None for one that is no prompt.

    `skills` has the directories with a SKILL.md: their other files belong to the skill.
    """
    *folders, file = path.split("/")
    if file == SKILL:
        return Kind("skill", folders[-1] if folders else root[-1], "/".join(folders))
    above = {"/".join(folders[:count]) for count in range(len(folders) + 1)}
    if not file.endswith(".md") or file == _README or above & skills:
        return None
    whole = (*root, *folders)
    place = next((at for at in range(len(whole)) if whole[at : at + 2] == _COMMANDS), None)
    if place is not None:
        named = whole[place + 2 :]
        return Kind("command", "-".join([*named, file[:-3]]), "")
    if file.startswith(("_", ".")) or any(one.startswith(("_", ".")) for one in folders):
        return None
    return Kind("prompt", "-".join([*folders, file[:-3]]), "")


def find_name(kind: Kind, data: bytes) -> str | None:
    """The name that a file gives its prompt, where that is seen without reading YAML; None where it takes that."""
    if kind.form == "command":
        return kind.name
    front = _FRONT.match(data)
    if front is None:
        return kind.name
    found = _PLAIN_NAME.findall(front[1])
    if len(found) == 1 and len(_OTHER_NAME.findall(front[1])) == 1:
        return str(found[0], "ascii")
    return None if _OTHER_NAME.search(front[1]) else kind.name


def parse_file(kind: Kind, data: bytes) -> Prompt:
    """The prompt of a file. Raises PromptError."""
    found = parse_document(data)
    if kind.form == "skill":
        return parse_skill(found, kind.name, kind.base)
    return (parse_command if kind.form == "command" else parse_prompt)(found, kind.name)
