"""Prompts in our own form: front matter with the keys of `keys`, and a body that is a template."""

from servers.prompts.errors import PromptError
from servers.prompts.format.definitions import Argument, Message, Prompt, order_arguments
from servers.prompts.format.front_matter import ARGUMENT, MESSAGE, PROMPT, Document, refuse, require_keys
from shared.yaml import YamlMapping

_KINDS = ("text", "image", "audio", "resource")
_OF_TYPE: dict[str, tuple[type, ...]] = {
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
}


def parse_prompt(document: Document, name: str) -> Prompt:
    """The prompt of a file in our form, called `name` where it has no name. Raises PromptError."""
    if document.front is None:
        raise PromptError("bad_prompt", "it does not begin with front matter between two lines of ---", line=1)
    return build_prompt(document.front, document, name)


def build_prompt(front: YamlMapping, document: Document, name: str) -> Prompt:
    """The prompt whose keys are in `front` and whose body is that of the document. Raises PromptError."""
    require_keys(front, PROMPT, "the front matter")
    arguments = [_parse_argument(one) for one in front.get("arguments", ())]
    twice = [one for one in arguments if [other.name for other in arguments].count(one.name) > 1]
    if twice:
        refuse(front, "arguments", f"two arguments are called {twice[0].name!r}")
    messages = [_parse_message(one) for one in front.get("messages", ())]
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


def _parse_argument(found: YamlMapping) -> Argument:
    where = f"the argument {found['name']!r}" if isinstance(found.get("name"), str) else "an argument"
    require_keys(found, ARGUMENT, where)
    enum = tuple(found.get("enum", ()))
    kind = found.get("type", "enum" if enum else "string")
    if (kind == "enum") != bool(enum):
        refuse(found, "enum", f"{where}: an enum, and nothing else, has the values that there are")
    if len(set(enum)) < len(enum):
        refuse(found, "enum", f"{where}: enum has a value twice")
    default = found.get("default")
    if "default" in found:
        if found.get("required"):
            refuse(found, "default", f"{where} is required and has a default; it can't have both")
        # A bool is an int in Python, and nowhere else.
        fits = isinstance(default, _OF_TYPE.get(kind, (str,))) and isinstance(default, bool) == (kind == "boolean")
        if not fits:
            refuse(found, "default", f"{where}: its default is not a {'text' if kind not in _OF_TYPE else kind}")
        if kind == "enum" and default not in found["enum"]:
            refuse(found, "default", f"{where}: its default is not one of its values")
    return Argument(
        name=found["name"],
        type=kind,
        title=found.get("title"),
        description=found.get("description"),
        required=found.get("required", False),
        default=default,
        enum=enum,
        examples=tuple(found.get("examples", ())),
    )


def _parse_message(found: YamlMapping) -> Message:
    require_keys(found, MESSAGE, "a message")
    kinds = [kind for kind in _KINDS if kind in found]
    if len(kinds) != 1:
        refuse(found, "", f"a message has one of: {', '.join(_KINDS)}")
    kind = kinds[0]
    content = found[kind].strip() if kind == "text" else found[kind]
    if not content:
        refuse(found, kind, f"a message has an empty {kind}")
    return Message(found.get("role", "user"), kind, content, found.lines[kind])  # type: ignore[arg-type] # one of _KINDS
