"""Exports a prompt as a command of a host.

The text of the command is the prompt, rendered with the host's own placeholders as the values of arguments. Hosts
have no conditions. If a template does more with an optional argument than insert it, the argument keeps its default,
which is reported as a loss. If it does so with a required argument, the template is refused. Then the prompt and the
command are rendered with the same values, to check that the results are the same. So if the host would find a
placeholder that the prompt does not have, the template is refused too.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any, NamedTuple

from shared.text import escape
from shared.yaml import YamlMapping, write_yaml

from ..arguments import format_names, parse_value
from ..errors import PromptError
from ..format.commands import parse_command, parse_toml_command
from ..format.definitions import Argument, Prompt, Syntax
from ..format.front_matter import parse_document
from .rendering import Rendering, Text

_ALL_WORDS = "arguments"
_FRONT_MATTER = re.compile(r"(---[ \t]*\n)(.*?)(^---[ \t]*\n)", re.DOTALL | re.MULTILINE)
_SHELL_COMMAND = re.compile(r"!`[^`\n]+`")
_SHELL_OR_BLOCK = re.compile(r"!`[^`\n]+`|^```!.*", re.MULTILINE)
_DYNAMIC: dict[Syntax, re.Pattern[str]] = {
    "claude": _SHELL_OR_BLOCK,
    "gemini": re.compile(r"[!@]\{[^}\n]*\}"),
    "opencode": _SHELL_COMMAND,
    "vscode": re.compile(r"\$\{(?:file|selectedText|selection|workspaceFolder)\w*\}|#file:\S+"),
}
"""Text that a host replaces with the output of a program or with a file."""
_FIRST_LINE = 2
"""The number of the first line of front matter in a file, counted from 1."""
_MAX_CODEX_WORDS = 9
_TESTABLE = ("string", "enum", "file", "url")
"""The types of arguments of which no value is false in a template, unless the argument is omitted."""
_INSERTABLE = (*_TESTABLE, "number")
"""The types of arguments whose values are inserted as they were typed. The number 0 is false."""
_AS_SKILL = "Export it as a skill, without --as."
_MAX_SHOWN = 80
"""Maximum number of characters of a line in an error."""

MakePlaceholder = Callable[[int, Argument], str]
"""Returns the placeholder for an argument with this number, counted from 0."""


class Host(NamedTuple):
    """The format of a host's commands."""

    title: str
    syntax: Syntax
    ending: str
    """The file name extension."""
    keys: tuple[str, ...]
    """The keys of front matter that the host supports, of those that other hosts support too."""
    all: str | None
    """The placeholder for all typed text; None if the host has none."""
    word: MakePlaceholder | None = None
    """Makes the placeholder for an argument that is one of the typed words; None if the host has none."""
    named: MakePlaceholder | None = None
    """Makes the placeholder for an argument with a name; None if the host has none."""


def _codex_placeholder(number: int, argument: Argument) -> str:
    if number >= _MAX_CODEX_WORDS:
        raise PromptError(
            "bad_prompt", f"Codex supports {_MAX_CODEX_WORDS} numbered arguments, and the command has more"
        )
    return f"${number + 1}"


def _input_placeholder(number: int, argument: Argument) -> str:
    label = re.sub(r"[{}\n]+", " ", argument.description or "")[:500].strip()
    return f"${{input:{argument.name}:{label}}}" if label else f"${{input:{argument.name}}}"


_HINT_KEYS = ("description", "argument-hint")
HOSTS = {
    "claude": Host(
        "Claude Code",
        "claude",
        ".md",
        _HINT_KEYS,
        "$ARGUMENTS",
        lambda number, _: f"${number}",
        lambda _, argument: f"${argument.name}",
    ),
    "codex": Host(
        "Codex",
        "codex",
        ".md",
        _HINT_KEYS,
        "$ARGUMENTS",
        _codex_placeholder,
        lambda _, argument: f"${argument.name.upper()}",
    ),
    "cursor": Host("Cursor", "plain", ".md", (), None),
    "gemini": Host("Gemini CLI", "gemini", ".toml", ("description",), "{{args}}"),
    "opencode": Host(
        "opencode", "opencode", ".md", ("description",), "$ARGUMENTS", lambda number, _: f"${number + 1}"
    ),
    "vscode": Host(
        "VS Code",
        "vscode",
        ".prompt.md",
        ("description",),
        "${input:arguments}",
        _input_placeholder,
        _input_placeholder,
    ),
}
"""The hosts, by their names on the command line."""


class Command(NamedTuple):
    """The file of a command."""

    data: bytes
    losses: tuple[str, ...]
    """The parts of the prompt that the command lacks."""


def make_command(rendering: Rendering, data: bytes, host: Host) -> Command:
    """Return the command that is equivalent to a prompt. `data` is the prompt's file. Raises PromptError if there is
    none."""
    prompt = rendering.prompt
    if prompt.syntax == host.syntax:
        return Command(data, ())
    chosen = _choose_arguments(rendering, host)
    placeholders = _choose_placeholders(prompt, chosen, host)
    fixed = {argument.name: parse_value(argument, "") for argument in prompt.arguments if argument not in chosen}
    text = _render(rendering, fixed | placeholders)
    front, losses = _choose_front(prompt, data, host)
    own_dynamic, host_dynamic = (
        [match[0] for match in _DYNAMIC[syntax].finditer(text)] if syntax in _DYNAMIC else []
        for syntax in (prompt.syntax, host.syntax)
    )
    for item in host_dynamic:
        if item not in own_dynamic:
            reason = f"{host.title} would put the output of a program, or a file, in place of {item[:100]!r}"
            raise PromptError("bad_prompt", reason, _AS_SKILL)
    replaced = [item for item in own_dynamic if item not in host_dynamic][:1]
    losses += tuple(f"the text that its host inserts for {escape(item[:100])}" for item in replaced)
    if host.syntax == "claude" and not prompt.words and placeholders and host.all not in placeholders.values():
        front += write_yaml({"arguments": list(placeholders)})
    command_data = _write(prompt, host, front, text, data)
    command = (
        parse_toml_command(command_data, prompt.name)
        if host.syntax == "gemini"
        else parse_command(parse_document(command_data), prompt.name, host.syntax)
    )
    trial = _Trial(rendering, Rendering(command, _read_nothing), chosen, fixed)
    trial.require_same(host)
    # A required argument in `fixed` is unused: if the template used it, it would be chosen, or the template refused.
    for label, required in (("optional", False), ("unused", True)):
        names = [repr(item.name) for item in prompt.arguments if item.name in fixed and item.required is required]
        if names:
            losses += (f"the {label} argument{'s' * (len(names) > 1)} {', '.join(names)}",)
    return Command(command_data, (*losses, *trial.find_losses()))


def _read_nothing(path: str, max_bytes: int) -> bytes:
    raise PromptError("not_found", f"a command of a host has no file {path[:200]!r}")


def _choose_arguments(rendering: Rendering, host: Host) -> tuple[Argument, ...]:
    """Return the arguments that the command takes. The others keep their defaults. Raises PromptError."""
    prompt = rendering.prompt
    if prompt.syntax != "jinja":
        return prompt.arguments
    used, judged = set[str](), dict[str, int | None]()
    by_name = {argument.name: argument for argument in prompt.arguments}
    for use in filter(lambda use: use.name in by_name, rendering.uses()):
        argument = by_name[use.name]
        used.add(use.name)
        if use.how == "written":
            is_plain = argument.type in _INSERTABLE
        else:
            # A required argument is never empty.
            is_plain = use.how == "tested" and argument.required and argument.type in _TESTABLE
        if not is_plain:
            judged.setdefault(use.name, use.line)
    for argument in prompt.arguments:
        if argument.required and argument.name in judged:
            reason = f"it does more with {argument.name!r} than insert it, which no {host.title} command can do"
            suggestion = f"Give {argument.name!r} a default, or export it as a skill, without --as."
            raise PromptError("bad_prompt", reason, suggestion, judged[argument.name])
    chosen = tuple(argument for argument in prompt.arguments if argument.name in used - judged.keys())
    if _has_placeholders(chosen, host):
        return chosen
    return tuple(argument for argument in chosen if argument.required)


def _has_placeholders(arguments: Sequence[Argument], host: Host) -> bool:
    return host.word is not None or len(arguments) <= (host.all is not None)


def _choose_placeholders(prompt: Prompt, arguments: Sequence[Argument], host: Host) -> dict[str, str]:
    """Return the host's placeholder for each argument, by name. Raises PromptError."""
    if not _has_placeholders(arguments, host):
        accepted = "no arguments" if host.all is None else f"one argument, {host.all}"
        reason = f"commands of {host.title} take {accepted}, but it needs {format_names(arguments)}"
        raise PromptError("bad_prompt", reason, _AS_SKILL)
    # The only argument of a template gets all typed text. With a numbered or named placeholder it would be one word.
    is_text = prompt.syntax == "jinja" and host.named is not host.word
    if len(arguments) == 1 and host.all and (arguments[0].name == _ALL_WORDS or host.word is None or is_text):
        return {arguments[0].name: host.all}
    make_placeholder = (host.word if prompt.words and not prompt.declared else host.named) or host.word
    ordered = prompt.words or tuple(argument.name for argument in arguments)
    by_name = {argument.name: argument for argument in arguments}
    if make_placeholder is None:
        return {}
    return {name: make_placeholder(number, by_name[name]) for number, name in enumerate(ordered)}


def _render(rendering: Rendering, values: Mapping[str, Any]) -> str:
    """Render the prompt to a single text. Raises PromptError if it has several messages, or files."""
    messages = rendering.render(values)
    if len(messages) != 1 or not isinstance(messages[0].content, Text):
        reason = "a command is one text, but the prompt has several messages, or files in them"
        raise PromptError("bad_prompt", reason, _AS_SKILL)
    return messages[0].content.text


def _choose_front(prompt: Prompt, data: bytes, host: Host) -> tuple[str, tuple[str, ...]]:
    """Return the front matter for the host, and what is lost of the prompt's own. Lines of the prompt's front matter
    are copied where possible."""
    match = _FRONT_MATTER.match(_decode(data)) if prompt.syntax not in ("jinja", "gemini") else None
    if match is None:
        lost = [key for key, value in (("title", prompt.title), ("tags", prompt.tags)) if value]
        lost += [
            f"the {key} of arguments"
            for key in ("type", "default", "enum")
            if any(getattr(argument, key) not in (None, (), "string") for argument in prompt.arguments)
        ]
        is_described = prompt.syntax in ("jinja", "gemini")
        has_place = is_described and "description" in host.keys
        lost += ["description"] if is_described and not has_place else []
        return write_yaml({"description": prompt.description}) if has_place else "", tuple(lost)
    keys = parse_document(data).front or YamlMapping(1)
    supported = {key: value for key, value in keys.items() if key in host.keys}
    lines = match[2].splitlines(keepends=True)
    starts = [keys.lines[key] - _FIRST_LINE for key in keys]
    parts = zip(keys, starts, [*starts[1:], None], strict=True)
    written = "".join("".join(lines[start:end]) for key, start, end in parts if key in supported)
    lost = [key for key in keys if key not in supported]
    # If the copied lines alone mean something else, for example because of YAML anchors, write the values anew.
    with suppress(PromptError):
        if parse_document(f"---\n{written}---\n".encode()).front == supported:
            return written, tuple(lost)
    return write_yaml(supported), tuple(lost)


def _decode(data: bytes) -> str:
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def _write(prompt: Prompt, host: Host, front: str, text: str, data: bytes) -> bytes:
    if host.syntax == "gemini":
        description_line = f"description = {json.dumps(prompt.description, ensure_ascii=False)}\n"
        escaped = text.replace("\\", "\\\\").replace('"""', '""\\"')
        return f'{description_line}prompt = """\n{escaped}\n"""\n'.encode()
    before, after = "\n" if front else "", "\n"
    if prompt.syntax not in ("jinja", "gemini"):
        source = _decode(data)
        match = _FRONT_MATTER.match(source)
        body = source[match.end() :] if match else source
        before = body[: len(body) - len(body.lstrip())]
        after = body[len(body.rstrip()) :]
    return f"{f'---{chr(10)}{front}---{chr(10)}' if front else ''}{before}{text}{after}".encode()


class _Trial(NamedTuple):
    """Compares a prompt (`ours`) with its command (`theirs`). Both are rendered with the same values."""

    ours: Rendering
    theirs: Rendering
    arguments: Sequence[Argument]
    """The arguments of the prompt that the command takes."""
    fixed: Mapping[str, Any]
    """The values of the other arguments."""

    def require_same(self, host: Host) -> None:
        """Raise PromptError if the command's text differs from the prompt's."""
        names = self._match_names()
        if len(names) != len(self.arguments) or len(names) != len(self.theirs.prompt.arguments):
            requested = format_names(self.theirs.prompt.arguments)
            reason = f"as a {host.title} command it would have a different text: the host would ask for {requested}"
            raise PromptError("bad_prompt", reason, _AS_SKILL)
        for probe in ("word{}", "{}-other"):
            expected, actual = self._render_both({name: probe.format(number) for number, name in enumerate(names)})
            if expected != actual:
                lines = zip_longest(expected.splitlines(), actual.splitlines(), fillvalue="")
                line, other = next((pair for pair in lines if pair[0] != pair[1]), ("", ""))
                reason = f"as a {host.title} command it would have a different text: {other[:_MAX_SHOWN]!r}, not "
                raise PromptError("bad_prompt", f"{reason}{line[:_MAX_SHOWN]!r}", _AS_SKILL)

    def find_losses(self) -> tuple[str, ...]:
        """Return the properties of the template that the command lacks. A command has no defaults, and a fence in it
        does not become longer if an argument contains a fence."""
        if self.ours.prompt.syntax != "jinja":
            return ()
        names = {argument.name: argument.name for argument in self.arguments}
        required = {argument.name: argument.name for argument in self.arguments if argument.required}
        fenced, actual = self._render_both({name: f"```\n{value}\n```" for name, value in names.items()})
        losses = ["longer fences around arguments with a fence in them"] if fenced != actual else []
        # Omit optional arguments together and one at a time, since the default of one may be the value of another.
        optional = names.keys() - required.keys()
        left_out = [required, *({key: names[key] for key in names if key != name} for name in optional)]
        pairs = map(self._render_both, left_out)
        differ = any(expected != actual for expected, actual in pairs)
        losses += ["the text for optional arguments that are left out"] if differ else []
        return tuple(losses)

    def _match_names(self) -> dict[str, str]:
        """Return, for each argument of the prompt, the name of the command's argument: the same name, perhaps in
        another case, or else that of the argument at the same position."""
        prompt = self.ours.prompt
        names = prompt.words or tuple(argument.name for argument in self.arguments)
        theirs = self.theirs.prompt.words or tuple(argument.name for argument in self.theirs.prompt.arguments)
        alike = {name.casefold(): name for name in theirs}
        if all(name.casefold() in alike for name in names):
            return {name: alike[name.casefold()] for name in names}
        return dict(zip(names, theirs, strict=False))

    def _render_both(self, values: Mapping[str, str]) -> tuple[str, str]:
        """Return the text of the prompt and that of the command with these values. White space around them is
        removed, since the file of a command does not keep it."""
        names = self._match_names()
        defaults = {argument.name: parse_value(argument, "") for argument in self.arguments}
        ours = _render(self.ours, {**self.fixed, **defaults, **values})
        theirs = _render(self.theirs, {names[name]: value for name, value in values.items()})
        return ours.strip(), theirs.strip()
