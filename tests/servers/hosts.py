"""Clients of one server, with and without support for pages."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from shared import Server
from shared.extensions.apps import MIME_TYPE, UI
from shared.program.settings.option_parser import OptionParser
from shared.program.settings.options import Group, read_options
from tests.shared.server.peer import Peer, talking
from tests.wire import NEWEST_HANDSHAKE

HOST: dict[str, Any] = {"extensions": {UI: {"mimeTypes": [MIME_TYPE]}}}


@asynccontextmanager
async def shown(
    app: Server[Any], *options: str | Path, era: str = NEWEST_HANDSHAKE
) -> AsyncIterator[tuple[Peer, Peer]]:
    """Opens a server; yields a client that shows pages, and one that does not."""
    parser = OptionParser("test", [Group(app.settings_model.model_fields)])
    settings = read_options(app.settings_model, parser.read([str(option) for option in options]))
    async with app.open(settings) as running, talking(running, era, HOST) as host, talking(running, era) as other:
        yield host, other


async def view_of(peer: Peer, tool: str, **arguments: Any) -> Any:
    """Returns the data for the page of a tool."""
    answer = await peer.call(tool, **arguments)
    assert not answer["result"].get("isError"), answer
    return answer["result"]["_meta"]["view"]


def size_of(view: Any) -> int:
    """Returns the size as JSON in bytes."""
    return len(json.dumps(view, ensure_ascii=False, separators=(",", ":")).encode())


def without_marks(result: dict[str, Any]) -> dict[str, Any]:
    """Returns a result without its variable parts: the marks around foreign text, and the duration."""
    texts = [re.sub(r"-[0-9a-f]{8}>", ">", one.get("text", "")) for one in result["content"]]
    data = {name: value for name, value in (result.get("structuredContent") or {}).items() if name != "elapsed_ms"}
    return {"texts": [re.sub(r"[\d.e-]+ ms", "", text) for text in texts], "data": data}
