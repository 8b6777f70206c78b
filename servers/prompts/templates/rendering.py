"""Renders prompts to messages. Templates are compiled once, and then rendered with the values of arguments.

Values of arguments are inserted when a message is rendered, and rendered text is never parsed as a template.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import PurePosixPath
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, NamedTuple

from servers.common.images import image_type

from ..errors import PromptError
from ..format.definitions import Message, Prompt, Role
from ..format.placeholders import fill_placeholders
from .budget import (
    MAX_FILE_BYTES,
    MAX_SOURCE_LENGTH,
    RENDER_SECONDS,
    RenderBudget,
    current_budget,
)

if TYPE_CHECKING:
    from jinja2 import Template

    from .sandbox import Sandbox, Use

Read = Callable[[str, int], bytes]
"""Returns the contents of a file in the library. Raises PromptError, also if it has more than the given number of
bytes."""
_MAX_DEPTH = 10
_MAX_PARTIALS = 50
_MAX_PARTS = 8_000
"""Maximum number of parts (see `Sandbox.find_includes`) in the templates of a prompt. Compiling that many takes half
a second."""
_CODE_NAME_PREFIX = "prompt: "
"""Prefix of the file names of compiled templates. It shows which frames of a traceback are in templates."""


class Text(NamedTuple):
    """The text of a message."""

    text: str


class EmbeddedFile(NamedTuple):
    """A file in a message."""

    kind: str
    """image, audio or resource."""
    path: str
    """The path in the library, relative to `Prompt.base`."""
    mime_type: str
    data: bytes


class RenderedMessage(NamedTuple):
    """A message for a client."""

    role: Role
    content: Text | EmbeddedFile


class Rendering:
    """A prompt, ready to be rendered. Any thread may use it."""

    def __init__(self, prompt: Prompt, read: Read) -> None:
        """Read the templates that the prompt includes, and compile all templates. Raises PromptError."""
        self.prompt = prompt
        self.is_quick = self.was_late = False
        """`is_quick`: True if the last rendering in a thread was fast. `was_late`: True if a rendering without a
        thread took too long."""
        self._read = read
        self._partials: dict[str, Template] = {}
        self._templates: dict[int, Template] = {}
        if prompt.syntax == "jinja":
            sources = _read_sources(prompt, read)
            self._partials = {name: _compile(source, name, 1) for name, source in sources.items()}
            for index, message in enumerate(prompt.messages):
                if message.kind == "text":
                    self._templates[index] = _compile(message.content, "", message.line)

    @property
    def embeds(self) -> tuple[str, ...]:
        """The paths of the files in the prompt's messages."""
        return tuple(dict.fromkeys(message.content for message in self.prompt.messages if message.kind != "text"))

    @property
    def depends_only_on_prompt(self) -> bool:
        """True if rendering needs no file except the prompt's own."""
        return not self._partials and not self.embeds

    def uses(self) -> "Iterator[Use]":
        """Yield each place where a template of the prompt uses a value. Raises PromptError."""
        for message in self.prompt.messages:
            if message.kind == "text" and self.prompt.syntax == "jinja":
                for use in _get_sandbox().uses(message.content):
                    yield use._replace(line=message.line + (use.line or 1) - 1)
        for source in _read_sources(self.prompt, self._read).values() if self._partials else ():
            yield from (use._replace(line=None) for use in _get_sandbox().uses(source))

    def render(self, values: Mapping[str, Any], seconds: float = RENDER_SECONDS) -> tuple[RenderedMessage, ...]:
        """Render the messages. `values` has the value of each argument. Raises PromptError, also if this takes longer
        than about `seconds`."""
        budget = RenderBudget(self._partials, seconds)
        token = current_budget.set(budget)
        try:
            return tuple(self._render_message(*item, values, budget) for item in enumerate(self.prompt.messages))
        finally:
            current_budget.reset(token)

    def get_file(self, path: str) -> EmbeddedFile:
        """Return the current contents of the file with this path, which must be in a message. Raises PromptError."""
        for message in self.prompt.messages:
            if message.kind != "text" and message.content == path:
                return self._read_file(message)
        raise PromptError("not_found", f"the prompt has no file {path[:200]!r}")

    def _read_file(self, message: Message) -> EmbeddedFile:
        path, data = message.content, self._read(message.content, MAX_FILE_BYTES)
        default = "application/octet-stream" if b"\0" in data else "text/plain"
        # Models refuse an image whose declared type is wrong, which in some hosts ends the conversation.
        media_type = image_type(data) or _MIME.get(PurePosixPath(path).suffix.lower(), default)
        return EmbeddedFile(message.kind, path, media_type, data)

    def _render_message(
        self, index: int, message: Message, values: Mapping[str, Any], budget: RenderBudget
    ) -> RenderedMessage:
        if message.kind != "text":
            file = self._read_file(message)
            budget.count_embedded(len(file.data))
            return RenderedMessage(message.role, file)
        template = self._templates.get(index)
        if template is not None:
            with _translate_errors("", message.line):
                text = _join_pieces(template.root_render_func(template.new_context(dict(values))), budget)
        else:
            text = _join_pieces(fill_placeholders(message.content, self.prompt, values), budget)
        return RenderedMessage(message.role, Text(text))


def find_used_names(prompt: Prompt, read: Read) -> frozenset[str]:
    """Return the names of the values that the prompt's templates use. A prompt without templates has only arguments
    that its text uses. Raises PromptError for templates that can't be compiled."""
    texts = [message.content for message in prompt.messages if message.kind == "text"]
    if prompt.syntax != "jinja":
        return frozenset(argument.name for argument in prompt.arguments)
    partials = [_get_sandbox().names(source) for source in _read_sources(prompt, read).values()]
    templates = [_get_sandbox().names(source) for source in texts]
    # An included template can use names that the including template sets, so these need not be arguments.
    assigned = {name for _, names in (*partials, *templates) for name in names}
    partial_names = {name for names, _ in partials for name in names}
    return frozenset((partial_names - assigned).union(*(names for names, _ in templates)))


def _read_sources(prompt: Prompt, read: Read) -> dict[str, str]:
    sources = _Sources(read)
    for message in prompt.messages:
        if message.kind == "text":
            sources.add(message.content, message.line)
    return sources.partials


@cache
def _get_sandbox() -> "Sandbox":
    from .sandbox import Sandbox

    return Sandbox()


class _Sources:
    """Reads the templates that the templates of a prompt include, and limits their number and size."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._parts = self._characters = 0
        self.partials: dict[str, str] = {}
        """The included templates by name. A template comes after those that it includes."""

    def add(self, source: str, line: int, chain: tuple[str, ...] = ()) -> None:
        """Read the templates that `source` includes, recursively. `chain` contains the names of the templates that
        are included on the way to it. Raises PromptError, also for circular includes."""
        self._characters += len(source)
        if self._characters > MAX_SOURCE_LENGTH:
            reason = f"the templates have more than {MAX_SOURCE_LENGTH:,} characters in total"
            raise PromptError("too_large", reason, line=line)
        with _translate_errors(chain[-1] if chain else "", line):
            names, parts = _get_sandbox().find_includes(source)
        self._parts += parts
        if self._parts > _MAX_PARTS:
            reason = f"the templates have more than {_MAX_PARTS:,} expressions, tags and texts in total"
            raise PromptError("too_large", reason, line=line)
        for name in names:
            if name in self.partials:
                continue
            if name in chain:
                circle = " includes ".join(map(repr, [*chain[chain.index(name) :], name]))
                raise PromptError("bad_template", f"circular includes: {circle}", line=line)
            if len(chain) >= _MAX_DEPTH or len(self.partials) >= _MAX_PARTIALS:
                reason = f"includes go {_MAX_DEPTH} levels deep, and have {_MAX_PARTIALS} files, at most"
                raise PromptError("bad_template", reason, line=line)
            try:
                text = self._read(name, MAX_SOURCE_LENGTH).decode("utf-8-sig").replace("\r\n", "\n").strip()
            except UnicodeDecodeError:
                raise PromptError("bad_template", f"the included {name[:200]!r} is not UTF-8", line=line) from None
            except PromptError as error:
                raise PromptError("bad_template", f"an include: {error.reason}", error.suggestion, line) from None
            self.add(text, line, (*chain, name))
            self.partials[name] = text


def _compile(source: str, name: str, line: int) -> "Template":
    with _translate_errors(name, line):
        return _get_sandbox().template(source, _CODE_NAME_PREFIX + name)


def _join_pieces(pieces: Iterable[str], budget: RenderBudget) -> str:
    """Join the pieces. Raises PromptError once the text is too long."""
    checked = []
    for piece in pieces:
        budget.count_written(len(piece))
        checked.append(piece)
    return "".join(checked)


@contextmanager
def _translate_errors(name: str, line: int) -> Iterator[None]:
    """Convert errors of a template in the block to PromptError. The template begins at `line` of the prompt's file;
    if `name` is not empty, it is an included one, which is included there."""
    from jinja2 import TemplateError, TemplateSyntaxError

    try:
        yield
    except TemplateSyntaxError as error:
        raise _make_error(str(error.message), name, line, error.lineno) from None
    except (RecursionError, SyntaxError, MemoryError):
        raise _make_error("the template is nested too deeply", name, line, 1) from None
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        # Find the innermost frame in a template: the name of the included template, or "", and the line in it.
        where, number = "", 1
        for frame, code_line in walk_tb(error.__traceback__):
            code_name = frame.f_code.co_filename
            if code_name.startswith(_CODE_NAME_PREFIX):
                where = code_name.removeprefix(_CODE_NAME_PREFIX)
                # Jinja stores lines as "template=code&template=code".
                pairs = (pair.partition("=") for pair in frame.f_globals.get("debug_info", "").split("&") if pair)
                number = max((int(template) for template, _, code in pairs if int(code) <= code_line), default=1)
        raise _make_error(str(error) or type(error).__name__, where or name, line, number) from None


def _make_error(reason: str, name: str, line: int, number: int) -> PromptError:
    if name:
        return PromptError("bad_template", f"line {number} of the included {name!r}: {reason}", line=line)
    return PromptError("bad_template", reason, line=line + number - 1)


_MIME = {
    ".aac": "audio/aac",
    ".csv": "text/csv",
    ".flac": "audio/flac",
    ".gif": "image/gif",
    ".html": "text/html",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".json": "application/json",
    ".m4a": "audio/mp4",
    ".md": "text/markdown",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wav": "audio/wav",
    ".webp": "image/webp",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
