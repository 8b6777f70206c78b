"""A scripted user of one server: its calls, and their costs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.raw import Raw, call, request


class Refused(Exception):
    """A call failed; the model reads its text."""


class Session:
    """One client of a server, which counts its calls and the bytes of their results."""

    def __init__(self, process: Raw) -> None:
        self._process = process
        self._number = 0
        self.calls = 0
        self.size = 0

    def definitions(self) -> int:
        """Return the bytes of what hosts give their models of `tools/list`. The rest is for hosts and programs: a
        model sees neither hints nor the schema of results."""
        tools = self._ask("tools/list")["result"]["tools"]
        return _size([{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools])

    def call(self, tool: str, **arguments: Any) -> str:
        """Return the text of the result. Raises Refused."""
        self.calls += 1
        self._number += 1
        self._process.send(call(self._number, tool, **arguments))
        answer = self._process.answer(self._number)
        if "error" in answer:
            text = str(answer["error"]["message"])
            self.size += len(text.encode())
            raise Refused(text)
        result = answer["result"]
        self.size += sum(map(_shown, result["content"]))
        text = "\n".join(block.get("text") or block.get("uri", f"[{block['type']}]") for block in result["content"])
        if result.get("isError"):
            raise Refused(text)
        return text

    def read_resource(self, uri: str) -> str:
        """Return the text of a resource, which counts as a call. Raises Refused."""
        self.calls += 1
        answer = self._ask("resources/read", uri=uri)
        if "error" in answer:
            raise Refused(str(answer["error"]["message"]))
        self.size += sum(len(content["text"].encode()) for content in answer["result"]["contents"])
        return "".join(content["text"] for content in answer["result"]["contents"])

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self._process.send(request(self._number, method, params))
        answer: dict[str, Any] = self._process.answer(self._number)
        return answer


@contextmanager
def opened(command: list[str]) -> Iterator[Session]:
    """Give a session with the server that `command` starts."""
    with Raw(command) as process:
        yield Session(process.open())


def _shown(block: dict[str, Any]) -> int:
    """Return the bytes of a block that a model reads: those of its text, if it has one."""
    return len(block["text"].encode()) if block["type"] == "text" else _size(block)


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
