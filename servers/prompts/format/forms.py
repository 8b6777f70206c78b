"""Determines the formats and names of the files in a library, by path or, if the path does not decide, by content.

Each host has its own folders for commands. In other folders, a Markdown file is in this server's own format if it
declares arguments or messages, or includes another file. If it does not, it needs no template, so it is a command,
whose text is sent as it is except for placeholders.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from shared.yaml import YamlMapping

from ..errors import PromptError
from .commands import get_name, parse_command, parse_toml_command
from .definitions import Prompt, Syntax
from .front_matter import PROMPT, STRUCTURED, Document, parse_document
from .prompts import parse_prompt
from .skills import parse_skill

SKILL = "SKILL.md"
"""The file that makes its directory a skill."""
HIDDEN_FOLDERS = frozenset(
    {".agents", ".claude", ".claude-plugin", ".codex", ".cursor", ".gemini", ".github", ".opencode"}
)
"""Folders in which hosts keep commands or skills. Other folders whose names begin with a dot are not read."""

_COMMAND_FOLDERS: dict[tuple[str, ...], tuple[Syntax, str]] = {
    (".claude", "commands"): ("claude", ".md"),
    (".claude", "agents"): ("claude", ".md"),
    (".claude-plugin", "commands"): ("claude", ".md"),
    (".claude-plugin", "agents"): ("claude", ".md"),
    (".codex", "prompts"): ("codex", ".md"),
    (".cursor", "agents"): ("plain", ".md"),
    (".cursor", "commands"): ("plain", ".md"),
    (".gemini", "commands"): ("gemini", ".toml"),
    (".github", "agents"): ("plain", ".md"),
    (".github", "commands"): ("gemini", ".toml"),
    (".github", "prompts"): ("vscode", ".prompt.md"),
    (".opencode", "agent"): ("plain", ".md"),
    (".opencode", "agents"): ("plain", ".md"),
    (".opencode", "command"): ("opencode", ".md"),
    (".opencode", "commands"): ("opencode", ".md"),
    ("opencode", "command"): ("opencode", ".md"),
    ("opencode", "commands"): ("opencode", ".md"),
}
"""The folders in which hosts keep commands, as the names of a folder and its subfolder. Each has the syntax and the
file extension of the commands in it."""
_PLUGIN_FOLDERS = ("commands", "agents")
"""The folders with the commands of a Claude Code plugin or a Gemini CLI extension."""
_AGENT_FOLDERS = ("agent", "agents")
_NOT_IN_NAMES = frozenset({*HIDDEN_FOLDERS, "command", "commands", "prompts", "skills"})
"""Folders whose names describe their contents, and not whose prompts these are."""
_ENDINGS = (".prompt.md", ".agent.md", ".chatmode.md", ".instructions.md", ".md", ".toml")
_DOCUMENTS = frozenset(
    f"{name}.md"
    for name in (
        *("AGENTS", "CHANGELOG", "CLAUDE", "CODE_OF_CONDUCT", "CONTRIBUTING"),
        *("GEMINI", "LICENSE", "README", "SECURITY"),
    )
)
"""Files that often are in the same folder as prompts, but are not prompts."""
_FRONT_MATTER = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_NAME_LINE = re.compile(rb"^name:[ \t]+([A-Za-z][A-Za-z0-9_-]*)[ \t]*\r?$", re.MULTILINE)
_POSSIBLE_NAME_LINE = re.compile(rb"^(?:name\b|[^a-z \t\r\n#-])", re.MULTILINE)
"""Matches lines that may set the name, perhaps in a notation that only a YAML parser reads, such as a quoted key."""
_INCLUDES = re.compile(r"\{%-?\s*include\b")


class Kind(NamedTuple):
    """The classification of a file."""

    form: Literal["markdown", "command", "skill"]
    """`command` if the file is in a folder for commands, so that its path also gives the name."""
    name: str
    """The name of the prompt, unless its front matter has another."""
    base: str
    """See `Prompt.base`."""
    syntax: Syntax = "claude"
    """The syntax of a command, and of Markdown that is not in this server's own format."""
    may_be_ours: bool = True
    """True if the file may be in this server's own format. In a folder of a host, it is always in the host's
    format."""


def is_manifest(file: str) -> bool:
    """Return True if a file with this name makes its directory a skill. Case is ignored, as on macOS and Windows."""
    return file.lower() == SKILL.lower()


def find_kind(path: str, root: tuple[str, ...], skills: frozenset[str]) -> Kind | None:
    """Classify the file at `path` in the library at `root`; return None if it is not a prompt.

    `skills` contains the directories with a SKILL.md, whose other files belong to the skill.
    """
    *folders, file = path.split("/")
    if is_manifest(file):
        return Kind("skill", folders[-1] if folders else root[-1], "/".join(folders))
    file = _lower_ending(file)
    ending = next((ending for ending in _ENDINGS if file.endswith(ending) and file != ending), None)
    parents = {"/".join(folders[:count]) for count in range(len(folders) + 1)}
    if ending is None or file in _DOCUMENTS or parents & skills:
        return None
    all_folders = (*root, *folders)
    for index in range(len(all_folders) - 1):
        host = _COMMAND_FOLDERS.get(all_folders[index : index + 2])
        if host is not None and file.endswith(host[1]):
            stem = file.removesuffix(host[1]).removesuffix(".agent")
            return Kind("command", _join_names(all_folders[index + 1 :], stem), "", host[0], False)
    if file.startswith(("_", ".")) or any(folder.startswith(("_", ".")) for folder in folders):
        return None
    stem = file.removesuffix(ending)
    if ending == ".prompt.md":
        return Kind("markdown", "-".join([*folders, stem]), "", "vscode")
    # The library may itself be a folder of commands.
    inner = all_folders[-len(folders) - 1 :]
    index = next((index for index in range(len(inner)) if inner[index] in _PLUGIN_FOLDERS), -1)
    if index >= 0:
        # Several plugins in one library may have commands with the same name.
        plugin = inner[index - 1] if index > 1 else ""
        syntax: Syntax = "gemini" if ending == ".toml" else "claude"
        return Kind("command", _join_names(inner[index:], stem, plugin), "", syntax)
    return None if ending == ".toml" else Kind("markdown", "-".join([*folders, stem]), "")


def _lower_ending(file: str) -> str:
    """Return the name of a file with its ending in lower case."""
    ending = next((ending for ending in _ENDINGS if file.lower().endswith(ending)), "")
    return file[: len(file) - len(ending)] + ending


def _join_names(folders: tuple[str, ...], stem: str, plugin: str = "") -> str:
    """Return the name of a command: the names of its plugin and folders, and the stem of its file, joined with -. The
    first folder is left out, since it is the one for commands."""
    # The name of an agent begins with "agents", since a skill may have the same name otherwise.
    agents = "agents" if folders[0] in _AGENT_FOLDERS else ""
    return "-".join(filter(None, (plugin, agents, *folders[1:], stem)))


def find_longer_names(path: str, kind: Kind, declared: str, all_folders: bool = False) -> Iterator[str]:
    """Yield names for the prompt in the file at `path`, from short to long.

    The first is the declared name or the stem of the file. Each of the others has one more folder of the path in
    front. Folders in `_NOT_IN_NAMES` are skipped unless `all_folders`; with it, one more name begins with `skill` or
    `prompt`.
    """
    *folders, file = path.split("/")
    file = _lower_ending(file)
    if kind.form == "skill":
        folders, stem = folders[:-1], kind.name
    else:
        stem = next((file.removesuffix(ending) for ending in _ENDINGS if file.endswith(ending)), file)
    name = stem if declared == kind.name else declared
    for folder in reversed([folder for folder in folders if all_folders or folder not in _NOT_IN_NAMES]):
        yield name
        name = f"{folder.lstrip('.')}-{name}"
    yield name
    if all_folders:
        yield f"{'skill' if kind.form == 'skill' else 'prompt'}-{name}"


def find_name(kind: Kind, data: bytes) -> str | None:
    """Return the name that a file gives its prompt; None if only parsing its YAML can show it."""
    if kind.form == "command":
        return kind.name
    front = _FRONT_MATTER.match(data)
    if front is None:
        return kind.name
    names = _NAME_LINE.findall(front[1])
    if len(names) == 1 and len(_POSSIBLE_NAME_LINE.findall(front[1])) == 1:
        return str(names[0], "ascii")
    return None if _POSSIBLE_NAME_LINE.search(front[1]) else kind.name


def parse_file(kind: Kind, data: bytes) -> Prompt:
    """Return the prompt of a file. Raises PromptError."""
    if kind.syntax == "gemini":
        return parse_toml_command(data, kind.name)
    document = parse_document(data)
    if kind.form == "skill":
        return parse_skill(document, kind.name, kind.base)
    if kind.may_be_ours and kind.syntax == "claude" and _is_template(document):
        try:
            prompt = parse_prompt(document, kind.name)
        except PromptError as error:
            front = document.front or YamlMapping(1)
            arguments = [item for item in _get_list(front, "arguments") if isinstance(item, YamlMapping)]
            patterns = [rf"\{{\{{-?\s*{re.escape(str(item.get('name')))}\b" for item in arguments]
            # Only this server's format has messages, statements of templates, or declared arguments in the body.
            if "messages" in front or re.search("|".join([r"\{%", *patterns]), document.body) is not None:
                raise
            # Without these, the file may be for another program, which declares arguments with other keys or types.
            document = document._replace(notice=(error.line or 1, f"{error.reason}; it is served as a command"))
        else:
            return prompt._replace(name=kind.name) if kind.form == "command" else prompt
    name = kind.name if kind.form == "command" else get_name(document.front, kind.name)
    return parse_command(document, name, kind.syntax)


def _is_template(document: Document) -> bool:
    """Return True if a file is in this server's own format."""
    front = document.front
    if front is None:
        return False
    declared = any(isinstance(item, YamlMapping) for key in STRUCTURED for item in _get_list(front, key))
    return declared or (front.keys() <= PROMPT.keys() and _INCLUDES.search(document.body) is not None)


def _get_list(front: YamlMapping, key: str) -> list[object]:
    value = front.get(key)
    return value if isinstance(value, list) else []
