"""What the demo does through the filesystem server."""

from pathlib import Path
from typing import Any

import anyio

from shared.client.client import Client

from .telling import Teller

__all__ = ["arguments", "work"]

NOTES = "# Shopping\n\n- bread\n- milk\n"


def arguments(folder: Path) -> list[str]:
    """Lays out a project in `folder`; how the server is started over it."""
    (folder / "notes.md").write_text(NOTES)
    (folder / "src").mkdir()
    (folder / "src" / "hello.py").write_text('print("hello")\n')
    return ["--allow-write", str(folder)]


async def work(client: Client, folder: Path, teller: Teller) -> None:
    """Lists, reads, edits, and is told of a change from outside."""
    (folder / "notes.md").write_text(NOTES)
    teller.sum_up("list_directory", ", ".join(await teller.call(client, "list_directory", path=str(folder))))
    found = await teller.call(client, "search_files", path=str(folder), pattern="*.py")
    teller.sum_up("search_files", f"*.py is {found[0]}")
    await teller.call(client, "read_text_file", path="notes.md")
    edits = [{"oldText": "- milk", "newText": "- oat milk\n- coffee"}]
    diff = await teller.call(client, "edit_file", path="notes.md", edits=edits)
    taken, added = (sum(line.startswith(sign) and not line.startswith(3 * sign) for line in diff) for sign in "-+")
    teller.sum_up("edit_file", f"notes.md: {taken} line replaced by {added}")
    await _watch(client, folder / "notes.md", teller)


async def _watch(client: Client, file: Path, teller: Teller) -> None:
    uri, told = file.as_uri(), anyio.Event()

    def notice(method: str, params: dict[str, Any]) -> None:
        if method == "notifications/resources/updated" and not told.is_set():
            teller.show(f"<- {method} {params['uri']}")
            told.set()

    async with client.subscribed([uri], notice):
        teller.show(f"-> subscribed to {uri}; now another program writes to it")
        file.write_text(NOTES + "- tea\n")
        with anyio.fail_after(10):
            await told.wait()
    contents = (await client.read_resource(uri))["contents"][0]["text"]
    teller.show(f"   it ends with {contents.splitlines()[-1]!r} now")
    teller.sum_up("subscription", f"another program changed {file.name}, and the client was told")
