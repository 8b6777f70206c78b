"""A server that keeps what it was sent, and answers as the test says."""

from typing import Any

import anyio

from shared.protocol.methods import Method
from shared.protocol.types.base import Implementation, Params
from shared.server.dispatch.context import Context
from shared.server.extension import Extension
from shared.server.server import Server
from tests.shared.server.peer import Json

ECHOED = ("tools/call", "resources/read", "prompts/get", "completion/complete", "vendor/do")


class Recording:
    """`app` answers each of `ECHOED` with what `answers` has for it."""

    def __init__(self) -> None:
        extension = Extension[None](
            "recording",
            methods=[Method("vendor/do", Params)],
            handlers={"vendor/do": self._answer},
            around=lambda row, handler: self._answer if row.name in ECHOED else handler,
        )
        declared: Json = {"completions": {}, "prompts": {}, "resources": {}, "logging": {}, "tools": {}}
        self.app = Server[None](
            Implementation(name="recording", version="1"), capabilities=declared, extensions=[extension]
        )
        self.seen: list[Context[None]] = []
        self.params: list[Json] = []
        """What came, as it came."""
        self.answers: dict[str, Any] = {
            "tools/call": {"content": []},
            "resources/read": {"contents": [{"uri": "a:b", "text": "t"}]},
            "prompts/get": {"messages": []},
            "completion/complete": {"completion": {"values": ["one"]}},
            "vendor/do": {"done": True},
        }
        self.came = anyio.Event()

    async def _answer(self, _running: Any, context: Context[None], _params: Any) -> Json:
        self.seen.append(context)
        self.params.append(dict(context.call.raw))
        self.came.set()
        answer = self.answers[context.call.method.name]
        if isinstance(answer, BaseException):
            raise answer
        if callable(answer):
            return await answer(context)  # type: ignore[no-any-return]
        return answer  # type: ignore[no-any-return]
