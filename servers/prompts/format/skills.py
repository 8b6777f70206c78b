"""Reads and writes Agent Skills: directories with a SKILL.md.

The format (agentskills.io) has neither arguments nor templates. A skill becomes a prompt with plain text, or with the
placeholders of Claude Code if the skill takes arguments. If a prompt is exported as a skill, it keeps such
placeholders. A template is exported as plain text, which can't be converted back.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from shared.yaml import YamlMapping, write_yaml

from ..errors import PromptError
from .commands import get_text, parse_command
from .definitions import Prompt
from .front_matter import Document

NAME = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
"""The valid names of skills."""
MAX_DESCRIPTION_LENGTH = 1_024
_MAX_FILES, MAX_BYTES = 512, 16 * 1024 * 1024
"""The numbers of files in a skill and of their bytes that all hosts support."""
LIMIT = f"a skill may have at most {_MAX_FILES} files and {MAX_BYTES:,} bytes"


def parse_skill(document: Document, name: str, base: str) -> Prompt:
    """Return the prompt of the SKILL.md in the directory `base`. If the front matter has no name, the prompt is
    called `name`, the name of this directory. Raises PromptError."""
    front = document.front or YamlMapping(1)
    command = parse_command(document, get_text(front, "name") or name, "claude", base)
    if not get_text(front, "description") and document.notice is None:
        # Without a description, Claude Code uses the text, but other hosts ignore the skill.
        command = command._replace(notice=(front.line, "it has no description, which a skill needs in most hosts"))
    # Most hosts have no placeholders in skills, so `$1` counts as one only if the skill says that it takes arguments.
    if command.hint or command.declared or "$ARGUMENTS" in document.body:
        return command
    return command._replace(arguments=(), words=(), syntax="plain")


def format_manifest(prompt: Prompt, body: str) -> str:
    """Return the SKILL.md of a prompt, with `body` as its text. The caller must put the files to which the text
    refers next to it, at the same paths as in the prompt.

    Raises PromptError if a skill can't have its name or description.
    """
    _require_valid(prompt)
    front: dict[str, Any] = {"name": prompt.name, "description": prompt.description}
    if prompt.syntax == "claude" and prompt.hint:
        front["argument-hint"] = prompt.hint
    elif prompt.syntax == "claude" and "$ARGUMENTS" not in prompt.messages[0].content:
        front["argument-hint"] = " ".join(f"[{argument.name}]" for argument in prompt.arguments)
    if prompt.allowed_tools:
        front["allowed-tools"] = " ".join(prompt.allowed_tools)
    return f"---\n{write_yaml(front)}---\n\n{body}\n"


def require_valid_manifest(prompt: Prompt, document: Document) -> None:
    """Raise PromptError unless the SKILL.md of the prompt is valid for all hosts. This server reads some that are
    not."""
    _require_valid(prompt)
    front = document.front or YamlMapping(1)
    for key in ("name", "description"):
        if not get_text(front, key):
            suggestion = f"Write {key}: {getattr(prompt, key)}"
            raise PromptError("bad_prompt", f"the front matter has no {key}, which a skill needs", suggestion, line=1)
    if get_text(front, "name") != prompt.name:
        raise PromptError("bad_prompt", f"the front matter has the name {get_text(front, 'name')!r}", line=1)


def require_size(file_sizes: Iterable[int]) -> None:
    """Raise PromptError unless all hosts support a skill with files of these sizes, including SKILL.md."""
    sizes = list(file_sizes)
    if len(sizes) > _MAX_FILES or sum(sizes) > MAX_BYTES:
        raise PromptError("too_large", LIMIT)


def find_excess_files(others: Mapping[str, int], manifest_size: int) -> set[str]:
    """Return the files of a skill that exceed the limits of hosts, if files are added in the order of their paths.

    `others` contains the sizes in bytes of all files except SKILL.md and hidden ones. `manifest_size` is the size of
    SKILL.md.
    """
    excess_files: set[str] = set()
    files, size = 1, manifest_size
    for path in sorted(others):
        if files == _MAX_FILES or size + others[path] > MAX_BYTES:
            excess_files.add(path)
        else:
            files, size = files + 1, size + others[path]
    return excess_files


def _require_valid(prompt: Prompt) -> None:
    if NAME.fullmatch(prompt.name) is None:
        suggestion = "Its name must have 1 to 64 of the characters a-z 0-9, with single - between them."
        raise PromptError("bad_prompt", f"a skill can't be called {prompt.name!r}", suggestion)
    if len(prompt.description) > MAX_DESCRIPTION_LENGTH:
        raise PromptError(
            "bad_prompt", f"the description of a skill may have at most {MAX_DESCRIPTION_LENGTH:,} characters"
        )
