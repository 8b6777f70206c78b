"""Golden examples: a file beside a prompt that says what it renders for some arguments.

`review-code.golden.yaml` beside `review-code.md` has `arguments`, as clients send them, and the `messages` that must
come: each has a role, and a text or the path of an embedded file.
"""

from typing import Any, NamedTuple

from servers.prompts.arguments import parse_values
from servers.prompts.errors import PromptError
from servers.prompts.format.front_matter import parse_mapping
from servers.prompts.library.library import Library
from servers.prompts.templates.rendering import Text
from shared.yaml import write_yaml

_MOST_BYTES = 64_000
_KINDS = {"arguments": dict, "messages": list}


class Golden(NamedTuple):
    """What is asked for, and what must come."""

    arguments: dict[str, str]
    messages: list[dict[str, str]]


def find_golden_path(path: str) -> str:
    """The file with the example of the prompt in the file at `path`."""
    return path.removesuffix(".md") + ".golden.yaml"


def read_golden(library: Library, name: str) -> Golden | None:
    """The example of a prompt; None where it has none. Raises PromptError for one that is wrong."""
    path = find_golden_path(library.path(name))
    try:
        data = library.read(path, _MOST_BYTES)
    except PromptError as error:
        if error.code == "not_found" and not library.has_file(path):
            return None
        raise PromptError("bad_prompt", error.reason) from None
    try:
        found = parse_mapping(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise PromptError("bad_prompt", f"{path} is not UTF-8") from None
    for key, kind in _KINDS.items():
        if not isinstance(found.get(key), kind):
            raise PromptError("bad_prompt", f"{path} has no {key}", line=found.lines.get(key, 1))
    arguments: dict[Any, Any] = found["arguments"]
    texts = [
        *arguments.values(),
        *(text for one in found["messages"] if isinstance(one, dict) for text in one.values()),
    ]
    if not all(isinstance(one, dict) for one in found["messages"]) or not all(isinstance(one, str) for one in texts):
        raise PromptError("bad_prompt", f"{path} has something else than texts", "Put them in quotes.")
    return Golden(dict(arguments), [dict(one) for one in found["messages"]])


def make_golden(library: Library, name: str, arguments: dict[str, str]) -> Golden:
    """What comes now for these arguments. Raises PromptError."""
    rendering = library.rendering(name)
    rendered = rendering.render(parse_values(rendering.prompt, arguments))
    messages: list[dict[str, str]] = []
    for role, content in rendered:
        said = {"text": content.text} if isinstance(content, Text) else {content.kind: content.path}
        messages.append({"role": role, **said})
    return Golden(arguments, messages)


def format_golden(golden: Golden) -> str:
    """The text of the file with this example."""
    return write_yaml(golden._asdict())
