"""Parses prompts in this server's own format: front matter with the keys of `front_matter.PROMPT`, and a template."""

from typing import Literal

from shared.yaml import YamlMapping

from ..errors import PromptError
from .definitions import Argument, Message, Prompt, order_arguments
from .front_matter import ARGUMENT, MESSAGE, PROMPT, Document, refuse, require_keys

_KINDS: tuple[Literal["text", "image", "audio", "resource"], ...] = ("text", "image", "audio", "resource")
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {"number": (int, float), "boolean": (bool,), "list": (list,)}


def parse_prompt(document: Document, name: str) -> Prompt:
    """Return the prompt of a file in this server's own format. It is called `name` if the front matter has no name.
    Raises PromptError."""
    if document.front is None:
        raise PromptError("bad_prompt", "it must begin with front matter enclosed by two `---` lines", line=1)
    front = document.front
    require_keys(front, PROMPT, "the front matter")
    arguments = [_parse_argument(item) for item in front.get("arguments", ())]
    duplicates = [item for item in arguments if [other.name for other in arguments].count(item.name) > 1]
    if duplicates:
        refuse(front, "arguments", f"two arguments are called {duplicates[0].name!r}")
    messages: list[Message] = []
    for item in front.get("messages", ()):
        require_keys(item, MESSAGE, "a message")
        kinds = [kind for kind in _KINDS if kind in item]
        if len(kinds) != 1:
            refuse(item, "", f"a message must have exactly one of: {', '.join(_KINDS)}")
        kind = kinds[0]
        content = item[kind].strip() if kind == "text" else item[kind]
        if not content:
            refuse(item, kind, f"a message has an empty {kind}")
        messages.append(Message(item.get("role", "user"), kind, content, item.lines[kind]))
    if document.body:
        messages.append(Message("user", "text", document.body, document.line))
    if not messages:
        raise PromptError("bad_prompt", "it has neither a body nor messages", line=document.line)
    return Prompt(
        name=front.get("name", name),
        description=front["description"].strip(),
        title=front.get("title"),
        arguments=order_arguments(arguments),
        tags=tuple(front.get("tags", ())),
        messages=tuple(messages),
    )


def _parse_argument(mapping: YamlMapping) -> Argument:
    where = f"the argument {mapping['name']!r}" if isinstance(mapping.get("name"), str) else "an argument"
    require_keys(mapping, ARGUMENT, where)
    enum = tuple(mapping.get("enum", ()))
    kind = mapping.get("type", "enum" if enum else "string")
    if (kind == "enum") != bool(enum):
        refuse(mapping, "enum", f"{where}: only an argument of type enum has a list of values, and it must have one")
    if len(set(enum)) < len(enum):
        refuse(mapping, "enum", f"{where}: enum has a duplicate value")
    default = mapping.get("default")
    if "default" in mapping:
        if mapping.get("required"):
            refuse(mapping, "default", f"{where} is required and has a default; it can't have both")
        # In Python a bool is also an int, so True would count as a number.
        matches_type = isinstance(default, _PYTHON_TYPES.get(kind, (str,))) and isinstance(default, bool) == (
            kind == "boolean"
        )
        if not matches_type:
            refuse(
                mapping, "default", f"{where}: its default is not a {'text' if kind not in _PYTHON_TYPES else kind}"
            )
        if kind == "enum" and default not in mapping["enum"]:
            refuse(mapping, "default", f"{where}: its default is not one of its values")
    return Argument(
        name=mapping["name"],
        type=kind,
        title=mapping.get("title"),
        description=mapping.get("description"),
        required=mapping.get("required", False),
        default=default,
        enum=enum,
        examples=tuple(mapping.get("examples", ())),
    )
