"""`render`: the messages of a prompt."""

from collections.abc import Sequence
from pathlib import Path

from servers.prompts.arguments.values import values
from servers.prompts.commands.output import Misuse, failed, opened, say
from servers.prompts.errors import PromptError
from servers.prompts.templates.rendering import Rendered, Text

__all__ = ["render"]


def render(root: Path, name: str, written: Sequence[str]) -> int:
    """Prints the messages, each after its role; 1 where the prompt is broken. Raises Misuse for wrong arguments."""
    library = opened(root)
    given = _given(written)
    try:
        path = library.path(name)
    except PromptError as error:
        raise Misuse(str(error)) from None
    try:
        rendering = library.rendering(name)
        try:
            found = values(rendering.prompt, given)
        except PromptError as error:
            raise Misuse(str(error)) from None
        messages = rendering.rendered(found)
    except PromptError as error:
        failed(root, path, error)
        return 1
    say("\n\n".join(map(_shown, messages)))
    return 0


def _given(written: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in written:
        key, equals, value = one.partition("=")
        if not equals or key in found:
            raise Misuse(f"{one[:80]!r} is no KEY=VALUE" if not equals else f"{key!r} is given twice")
        found[key] = value
    return found


def _shown(message: Rendered) -> str:
    content = message.content
    if isinstance(content, Text):
        return f"[{message.role}]\n{content.text}"
    return f"[{message.role}]\n({content.kind} {content.path}: {content.mime_type}, {len(content.data):,} bytes)"
