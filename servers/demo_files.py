"""What the demo does through the filesystem server."""

from pathlib import Path
from typing import Any

import anyio

from shared.client.client import Client

from .telling import call, say

__all__ = ["arguments", "work"]

NOTES = "# Shopping\n\n- bread\n- milk\n"


def arguments(folder: Path) -> list[str]:
    """Lays out a project in `folder`; how the server is started over it."""
    (folder / "notes.md").write_text(NOTES)
    (folder / "src").mkdir()
    (folder / "src" / "hello.py").write_text('print("hello")\n')
    return ["--allow-write", str(folder)]


async def work(client: Client, folder: Path) -> None:
    """Lists, reads, edits, and is told of a change from outside."""
    (folder / "notes.md").write_text(NOTES)
    await call(client, "list_directory", path=str(folder))
    await call(client, "search_files", path=str(folder), pattern="*.py")
    await call(client, "read_text_file", path="notes.md")
    edits = [{"oldText": "- milk", "newText": "- oat milk\n- coffee"}]
    await call(client, "edit_file", path="notes.md", edits=edits)
    await _watch(client, folder / "notes.md")


async def _watch(client: Client, file: Path) -> None:
    uri, told = file.as_uri(), anyio.Event()

    def notice(method: str, params: dict[str, Any]) -> None:
        if method == "notifications/resources/updated" and not told.is_set():
            say(f"<- {method} {params['uri']}")
            told.set()

    async with client.subscribed([uri], notice):
        say(f"-> subscribed to {uri}; now another program writes to it")
        file.write_text(NOTES + "- tea\n")
        with anyio.fail_after(10):
            await told.wait()
    contents = (await client.read_resource(uri))["contents"][0]["text"]
    say(f"   it ends with {contents.splitlines()[-1]!r} now")
