"""A client for the server next to it, which answers its question and is notified of its change."""

import sys
from pathlib import Path

import anyio

from shared.client import ClientOptions, ElicitForm, ElicitResult, ResourceReference, connect

SHELF = [sys.executable, str(Path(__file__).with_name("server.py")), "--first", "My life"]


async def answer(form: ElicitForm) -> ElicitResult:
    return ElicitResult(action="accept", content={"days": 7})


async def main() -> None:
    async with connect(SHELF, ClientOptions(elicit=answer)) as client:
        reference = ResourceReference(uri="book://{title}")
        print((await client.complete(reference, "title", "My")).values)
        (resource,) = await client.list_resources()
        async with client.changes([resource.uri], lists=False) as changes:
            print((await client.call_tool("lend", {"title": "My life"})).text)
            print((await anext(changes)).uri)
        print((await client.call_tool("lend", {"title": "Persuasion"})).text)


if __name__ == "__main__":
    anyio.run(main)
