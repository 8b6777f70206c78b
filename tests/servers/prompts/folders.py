"""Libraries for tests."""

from collections.abc import Mapping
from pathlib import Path

from servers.prompts.arguments import parse_values
from servers.prompts.library.library import Library
from servers.prompts.templates.rendering import Text

SIMPLE = "---\ndescription: Something.\n---\nSay it."


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())


def put(folder: Path, files: Mapping[str, str]) -> None:
    """Has each file there as a whole, as editors do: nobody sees a part of it."""
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = folder.parent / "unfinished"
        beside.write_text(content)
        beside.replace(file)


def library(folder: Path, files: Mapping[str, str | bytes]) -> Library:
    """A library with these files that was looked at."""
    folder.mkdir(exist_ok=True)
    write(folder, files)
    found = Library(folder)
    found.scan()
    return found


def texts(found: Library, name: str, **arguments: str) -> list[str]:
    """What the messages of a prompt say."""
    rendered = found.rendering(name).render(parse_values(found.prompt(name), arguments))
    return [one.content.text for one in rendered if isinstance(one.content, Text)]


OURS = "messages: [{role: assistant, text: Yes?}]"
"""Front matter that makes a file a template: without it, braces are text."""


def front(*lines: str, body: str = "Say it.") -> str:
    """A file in our form."""
    return "\n".join(("---", "description: Something.", *lines, "---", body))


def asking(body: str, *names: str) -> str:
    """A file whose prompt takes these texts."""
    return front("arguments:", *(f"  - name: {name}" for name in names), body=body)
