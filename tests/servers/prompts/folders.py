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
    """Writes each file atomically, as editors do."""
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = folder.parent / "unfinished"
        beside.write_text(content)
        beside.replace(file)


def library(folder: Path, files: Mapping[str, str | bytes]) -> Library:
    """Returns a library with these files, after a scan."""
    folder.mkdir(exist_ok=True)
    write(folder, files)
    found = Library(folder)
    found.scan()
    return found


def texts(found: Library, name: str, **arguments: str) -> list[str]:
    """Returns the texts of the messages of a prompt."""
    rendered = found.rendering(name).render(parse_values(found.prompt(name), arguments))
    return [one.content.text for one in rendered if isinstance(one.content, Text)]


OURS = "messages: [{role: assistant, text: Yes?}]"
"""Front matter that makes a file a template: without it, braces are text."""


def front(*lines: str, body: str = "Say it.") -> str:
    """Returns a prompt file in our form."""
    return "\n".join(("---", "description: Something.", *lines, "---", body))


def asking(body: str, *names: str) -> str:
    """Returns a prompt file with these string arguments."""
    return front("arguments:", *(f"  - name: {name}" for name in names), body=body)
