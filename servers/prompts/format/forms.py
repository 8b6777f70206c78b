"""What a file of a library is: by its path, and where that does not say it, by what is in it.

Each host has folders of its own for commands. Elsewhere a Markdown file is in our form where it declares arguments or
messages, or includes another file: nothing else in it would need a template. All others are commands, whose text is
sent as it is but for placeholders.
"""

import re
from typing import Literal, NamedTuple

from servers.prompts.format.commands import get_name, parse_command, parse_toml_command
from servers.prompts.format.definitions import Prompt, Syntax
from servers.prompts.format.front_matter import PROMPT, STRUCTURED, Document, parse_document
from servers.prompts.format.prompts import parse_prompt
from servers.prompts.format.skills import parse_skill
from shared.yaml import YamlMapping

SKILL = "SKILL.md"
HIDDEN_FOLDERS = frozenset({".claude", ".codex", ".cursor", ".gemini", ".github", ".opencode"})
"""Those that have commands in one of their folders."""

_HOSTS: dict[tuple[str, ...], tuple[Syntax, str]] = {
    (".claude", "commands"): ("claude", ".md"),
    (".claude", "agents"): ("claude", ".md"),
    (".codex", "prompts"): ("codex", ".md"),
    (".cursor", "commands"): ("plain", ".md"),
    (".gemini", "commands"): ("gemini", ".toml"),
    (".github", "prompts"): ("vscode", ".prompt.md"),
    (".opencode", "command"): ("opencode", ".md"),
    (".opencode", "commands"): ("opencode", ".md"),
    ("opencode", "command"): ("opencode", ".md"),
    ("opencode", "commands"): ("opencode", ".md"),
}
"""The rules for the files of a folder within another, and how their names end."""
_PLUGIN = ("commands", "agents")
"""The folders of a plugin of Claude Code, or of an extension of Gemini CLI."""
_ENDINGS = (".prompt.md", ".agent.md", ".chatmode.md", ".instructions.md", ".md", ".toml")
_DOCUMENTS = frozenset(
    f"{name}.md"
    for name in (
        *("AGENTS", "CHANGELOG", "CLAUDE", "CODE_OF_CONDUCT", "CONTRIBUTING"),
        *("GEMINI", "LICENSE", "README", "SECURITY"),
    )
)
"""What lies beside prompts, and is none."""
_FRONT = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_PLAIN_NAME = re.compile(rb"^name:[ \t]+([A-Za-z][A-Za-z0-9_-]*)[ \t]*\r?$", re.MULTILINE)
_OTHER_NAME = re.compile(rb"^(?:name\b|[^a-z \t\r\n#-])", re.MULTILINE)
_INCLUDES = re.compile(r"\{%-?\s*include\b")


class Kind(NamedTuple):
    """What a file is."""

    form: Literal["markdown", "command", "skill"]
    """A command is one by its path, and is called by it."""
    name: str
    """Of the prompt, unless its front matter has another."""
    base: str
    """See `Prompt.base`."""
    syntax: Syntax = "claude"
    """Of a command, and of Markdown that is not in our form."""
    may_be_ours: bool = True
    """Whether it may be in our form: what lies in a folder of a host is the host's."""


def find_kind(path: str, root: tuple[str, ...], skills: frozenset[str]) -> Kind | None:
    """What the file at `path` in the library at `root` is; None for one that is no prompt.

    `skills` has the directories with a SKILL.md: their other files belong to the skill.
    """
    *folders, file = path.split("/")
    if file == SKILL:
        return Kind("skill", folders[-1] if folders else root[-1], "/".join(folders))
    ending = next((one for one in _ENDINGS if file.endswith(one) and file != one), None)
    above = {"/".join(folders[:count]) for count in range(len(folders) + 1)}
    if ending is None or file in _DOCUMENTS or above & skills:
        return None
    whole = (*root, *folders)
    for at in range(len(whole) - 1):
        host = _HOSTS.get(whole[at : at + 2])
        if host is not None and file.endswith(host[1]):
            return Kind("command", _join_names(whole[at + 1 :], file.removesuffix(host[1])), "", host[0], False)
    if file.startswith(("_", ".")) or any(one.startswith(("_", ".")) for one in folders):
        return None
    stem = file.removesuffix(ending)
    if ending == ".prompt.md":
        return Kind("markdown", "-".join([*folders, stem]), "", "vscode")
    # A library may be the folder of commands itself.
    inner = whole[-len(folders) - 1 :]
    at = next((at for at in range(len(inner)) if inner[at] in _PLUGIN), -1)
    if at >= 0:
        # Several plugins of one library may have commands of the same name.
        plugin = inner[at - 1] if at > 1 else ""
        syntax: Syntax = "gemini" if ending == ".toml" else "claude"
        return Kind("command", _join_names(inner[at:], stem, plugin), "", syntax)
    return None if ending == ".toml" else Kind("markdown", "-".join([*folders, stem]), "")


def _join_names(folders: tuple[str, ...], stem: str, plugin: str = "") -> str:
    """The name of a prompt below the folder that makes it one. An agent says so: a skill may have the same name."""
    kind = "agents" if folders[0] == "agents" else ""
    return "-".join(filter(None, (plugin, kind, *folders[1:], stem)))


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
    if kind.syntax == "gemini":
        return parse_toml_command(data, kind.name)
    found = parse_document(data)
    if kind.form == "skill":
        return parse_skill(found, kind.name, kind.base)
    if kind.may_be_ours and kind.syntax == "claude" and _is_template(found):
        prompt = parse_prompt(found, kind.name)
        return prompt._replace(name=kind.name) if kind.form == "command" else prompt
    name = kind.name if kind.form == "command" else get_name(found.front, kind.name)
    return parse_command(found, name, kind.syntax)


def _is_template(document: Document) -> bool:
    """Whether a file is in our form."""
    front = document.front
    if front is None:
        return False
    declared = any(isinstance(one, YamlMapping) for key in STRUCTURED for one in _items(front, key))
    return declared or (front.keys() <= PROMPT.keys() and _INCLUDES.search(document.body) is not None)


def _items(front: YamlMapping, key: str) -> list[object]:
    value = front.get(key)
    return value if isinstance(value, list) else []
