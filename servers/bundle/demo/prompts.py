"""What the demo does through the prompt library: it lists, fills in and edits the prompts of a folder."""

from pathlib import Path
from typing import Any

import anyio

from shared.client.client import Client

from .telling import Teller

__all__ = ["arguments", "work"]

STANDUP = """---
description: What to say in the standup meeting.
tags: [team]
arguments:
  - {name: done, description: What was done since yesterday., required: true}
  - {name: mood, enum: [calm, proud], default: calm}
---
Write three sentences for the standup meeting, in a tone that is {{ mood }}. This was done:

{{ done|fence }}
"""
DONE = "{{ 7 * 7 }} is what the template said"


def arguments(folder: Path) -> list[str]:
    """Lays out a library in `folder`; how the server is started over it, with the prompts that come with it."""
    (folder / "standup.md").write_text(STANDUP)
    return ["--starter", str(folder)]


async def work(client: Client, folder: Path, teller: Teller) -> None:
    """Lists prompts, fills one in, searches, and is told of an edit."""
    names = [prompt["name"] for prompt in await client.list_prompts()]
    teller.show(f"-> prompts/list: {', '.join(names)}")
    filled = await _get(client, teller, done=DONE, mood="proud")
    teller.sum_up("prompts/get", f"it says, as was given: {filled[-2]}")
    found = await teller.call(client, "search_prompts", query="database question")
    teller.sum_up("search_prompts", f"of {len(names)} prompts for a database question: {found[1].split()[0]}")
    await _edit(client, folder / "standup.md", teller)


async def _get(client: Client, teller: Teller, **given: str) -> list[str]:
    """The lines of the prompt."""
    result = await client.get_prompt("standup", given)
    teller.show(f"-> prompts/get standup {given}")
    lines = [line for message in result["messages"] for line in message["content"]["text"].splitlines()]
    for line in lines:
        teller.show(f"   {line}")
    return lines


async def _edit(client: Client, file: Path, teller: Teller) -> None:
    uri, told = "prompt://standup", anyio.Event()

    def notice(method: str, params: dict[str, Any]) -> None:
        if method == "notifications/resources/updated" and not told.is_set():
            teller.show(f"<- {method} {params['uri']}")
            told.set()

    async with client.subscribed([uri], notice):
        teller.show(f"-> subscribed to {uri}; now somebody edits the file")
        shorter = STANDUP.replace("three sentences", "one sentence")
        file.write_text(STANDUP if file.read_text() == shorter else shorter)
        with anyio.fail_after(10):
            await told.wait()
    await _get(client, teller, done="the prompt library")
    teller.sum_up("subscription", f"somebody edited {file.name}, and the client was told")
