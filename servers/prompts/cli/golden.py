"""Reads, makes and writes golden examples: files next to prompts, with the expected messages for some arguments.

`review-code.golden.yaml` next to `review-code.md` has `arguments`, as clients send them, and the expected `messages`:
each has a role, and a text or the path of an embedded file.
"""

from typing import Any, NamedTuple

from shared.yaml import write_yaml

from ..arguments import parse_values
from ..errors import PromptError
from ..format.front_matter import parse_mapping
from ..library.library import Library
from ..templates.rendering import Text

_MAX_BYTES = 64_000
_KEY_TYPES = {"arguments": dict, "messages": list}


class Golden(NamedTuple):
    """The arguments of an example, and its expected messages."""

    arguments: dict[str, str]
    messages: list[dict[str, str]]


def find_golden_path(path: str) -> str:
    """Return the path of the example for the prompt in the file at `path`."""
    return path.removesuffix(".md") + ".golden.yaml"


def read_golden(library: Library, name: str) -> Golden | None:
    """Return the example of a prompt; None if it has none. Raises PromptError for an invalid one."""
    path = find_golden_path(library.path(name))
    try:
        data = library.read(path, _MAX_BYTES)
    except PromptError as error:
        if error.code == "not_found" and not library.has_file(path):
            return None
        raise PromptError("bad_prompt", error.reason) from None
    try:
        content = parse_mapping(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise PromptError("bad_prompt", f"{path} is not UTF-8") from None
    for key, kind in _KEY_TYPES.items():
        if not isinstance(content.get(key), kind):
            raise PromptError("bad_prompt", f"{path} has no {key}", line=content.lines.get(key, 1))
    arguments: dict[Any, Any] = content["arguments"]
    texts = [
        *arguments.values(),
        *(text for item in content["messages"] if isinstance(item, dict) for text in item.values()),
    ]
    if not all(isinstance(item, dict) for item in content["messages"]) or not all(
        isinstance(item, str) for item in texts
    ):
        raise PromptError("bad_prompt", f"{path} has values that are not strings", "Put them in quotes.")
    return Golden(dict(arguments), [dict(item) for item in content["messages"]])


def make_golden(library: Library, name: str, arguments: dict[str, str]) -> Golden:
    """Return the current messages for these arguments. Raises PromptError."""
    rendering = library.rendering(name)
    rendered = rendering.render(parse_values(rendering.prompt, arguments))
    messages: list[dict[str, str]] = []
    for role, content in rendered:
        fields = {"text": content.text} if isinstance(content, Text) else {content.kind: content.path}
        messages.append({"role": role, **fields})
    return Golden(arguments, messages)


def format_golden(golden: Golden) -> str:
    """Return the text of the file with this example."""
    return write_yaml(golden._asdict())
