"""Finds errors in prompts, and other things to which a reviewer might object."""

import re
from collections.abc import Iterator

from servers.common.files.names import is_device
from shared.yaml import YamlMapping

from ..errors import Problem, PromptError
from ..format.definitions import Argument, Prompt
from ..format.forms import SKILL, Kind, parse_file
from ..format.front_matter import parse_document
from ..format.skills import MAX_DESCRIPTION_LENGTH, NAME
from ..templates.budget import MAX_FILE_BYTES
from ..templates.rendering import Read, Rendering, find_used_names
from .library import Library

_MAX_TOKENS = 5_000
_REPLACED_CHARACTERS = re.compile(r"[^a-z0-9-]")
_TEMPLATE_TAG = re.compile(r"\{\{|\{%")
_PLACEHOLDER_ONE = re.compile(r"(?<!\\)\$1(?![\w.,])")
_SAFE_NAME = re.compile(r"[A-Za-z0-9_-]+")
_MAX_NAME_LENGTH = 64


def estimate_tokens(size: int) -> int:
    """Return an estimate of the number of tokens in a text of `size` bytes: one for four bytes. Code and non-Latin
    scripts have more."""
    return -(-size // 4)


def lint(library: Library) -> list[Problem]:
    """Return the problems of a library's files, sorted by path and line. This takes 5 ms for each prompt."""
    problems = set(library.check())
    broken = {problem.path for problem in problems}
    first_names: dict[str, str] = {}
    for name in library.names:
        path = library.path(name)
        if path not in broken:
            problems.update(lint_file(library, path, library.kind(name), library.source(name)))
        other = first_names.setdefault(_REPLACED_CHARACTERS.sub("_", name.casefold()), name)
        if other != name:
            reason = f"clients that replace characters or ignore case confuse {name!r} with {other!r}"
            problems.add(Problem(path, None, reason))
    return sorted(problems, key=lambda problem: (problem.path, problem.line or 0, problem.reason))


def lint_file(library: Library, path: str, kind: Kind, data: bytes) -> list[Problem]:
    """Return the problems that a file at `path` in the library has, or would have, with the contents `data`."""
    try:
        prompt = parse_file(kind, data)
        front = parse_document(data).front
    except PromptError as error:
        return [Problem(path, error.line, error.reason)]
    front = YamlMapping(1) if front is None else front
    remarks = [*_remark_on_definition(prompt, kind, front), *filter(None, (prompt.notice,))]
    if kind.form == "skill" and not path.endswith(SKILL):
        remarks.append((None, f"some hosts find a skill only if its file is called {SKILL}"))
    if estimate_tokens(len(data)) > _MAX_TOKENS:
        size = f"{len(data):,} bytes, about {estimate_tokens(len(data)):,} tokens (an estimate: bytes / 4)"
        remarks.append((None, f"it is long: {size}; {_MAX_TOKENS:,} are a lot for one prompt"))
    read = library.reader(prompt)
    try:
        _compile_and_read(prompt, read)
        names = find_used_names(prompt, read)
        unused = [argument for argument in prompt.arguments if argument.name not in names]
        remarks += [(_find_line(front, item), f"the argument {item.name!r} is not used") for item in unused]
        undeclared = names - {argument.name for argument in prompt.arguments} if prompt.syntax == "jinja" else ()
        for name in sorted(undeclared):
            pattern = re.compile(rf"\b{re.escape(name)}\b")
            uses = (
                message.line + message.content.count("\n", 0, match.start())
                for message in prompt.messages
                if message.kind == "text" and (match := pattern.search(message.content)) is not None
            )
            # If no message uses the name, an included template does. Then use the line of the first message.
            line = next(uses, prompt.messages[0].line)
            remarks.append((line, f"the template uses {name!r}, which is not an argument"))
    except PromptError as error:
        remarks.append((error.line, error.reason))
    return [Problem(path, line, reason) for line, reason in remarks]


def find_objections(name: str) -> tuple[str, ...]:
    """Return the difficulties that some clients may have with the name of a prompt. The prompt is served anyway."""
    objections = []
    if _SAFE_NAME.fullmatch(name) is None:
        objections.append("clients that turn it into a command replace all characters but A-Z a-z 0-9 _ -")
    if len(name) > _MAX_NAME_LENGTH:
        objections.append(f"it has more than {_MAX_NAME_LENGTH} characters, at which some clients truncate it")
    if is_device(name):
        objections.append("Windows does not allow a file with that name")
    return tuple(objections)


Remarks = Iterator[tuple[int | None, str]]
"""Remarks, each after the line that it is about."""


def _remark_on_definition(prompt: Prompt, kind: Kind, front: YamlMapping) -> Remarks:
    """Yield remarks on the name, the description and the placeholders of a prompt."""
    line = front.lines.get("name", front.line)
    objections = find_objections(prompt.name)
    for objection in objections:
        yield line, f"the name {prompt.name!r}: {objection}"
    if not objections and NAME.fullmatch(prompt.name) is None:
        yield line, f"the name {prompt.name!r}: the name of a skill may have only a-z 0-9, with single - between them"
    if kind.form == "skill" and not front.get("name"):
        yield line, "there is no name, which a skill needs"
    if kind.form == "skill" and prompt.name != kind.name:
        yield line, f"the name {prompt.name!r} is not that of the skill's directory, {kind.name!r}"
    if prompt.syntax != "gemini" and not front.get("description"):
        yield front.line, "there is no description"
    if len(prompt.description) > MAX_DESCRIPTION_LENGTH:
        reason = f"the description has more than {MAX_DESCRIPTION_LENGTH:,} characters, which a skill can't have"
        yield front.lines.get("description", front.line), reason
    for argument in prompt.arguments if prompt.syntax == "jinja" else ():
        if not argument.description:
            yield _find_line(front, argument), f"the argument {argument.name!r} has no description"
    message = prompt.messages[0]
    if kind.form == "markdown" and prompt.syntax == "claude" and (match := _TEMPLATE_TAG.search(message.content)):
        line = message.line + message.content.count("\n", 0, match.start())
        yield line, f"{match[0]} is served as it is written: a template declares its arguments in the front matter"
    if prompt.syntax == "claude" and _PLACEHOLDER_ONE.search(message.content) and "$0" not in message.content:
        yield message.line, "$1 is the second word: Claude Code counts from $0"


def _compile_and_read(prompt: Prompt, read: Read) -> None:
    """Compile the templates, and read the embedded files. Raises PromptError."""
    Rendering(prompt, read)
    for message in prompt.messages:
        if message.kind != "text":
            try:
                read(message.content, MAX_FILE_BYTES)
            except PromptError as error:
                raise PromptError(error.code, error.reason, line=message.line) from None


def _find_line(front: YamlMapping, argument: Argument) -> int:
    """Return the line of an argument's name in the front matter; if it is not declared there, the first line."""
    listed = front.get("arguments", ())
    lines = [item.lines["name"] for item in listed if item["name"] == argument.name]
    return lines[0] if lines else front.line
