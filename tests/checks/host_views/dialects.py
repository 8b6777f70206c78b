"""How Claude Code, Codex CLI and Gemini CLI speak to their models: what a request holds, and how a reply looks.

Each dialect knows as much of its host as a model needs that makes the calls of a list, one after another, and keeps
what comes back. A request that offers no tool of the server is no part of that conversation.
"""

import json
from typing import Any, NamedTuple, Protocol

SERVER = "tried"
"""What the server is called in the configuration of each host."""

Json = dict[str, Any]


class Call(NamedTuple):
    """A call that the model makes."""

    tool: str
    arguments: Json


class Reply(NamedTuple):
    """What the model answers over HTTP."""

    media_type: str
    body: bytes


class Dialect(Protocol):
    """How one host speaks to its model."""

    def results(self, request: Json) -> list[Any] | None:
        """What the host gave the model for each call until now, as it stands in the request; None where that is no
        part of the conversation."""

    def reply(self, call: Call | None, number: int) -> Reply:
        """The call, the `number`th from 0 on; without one the end of the conversation."""

    def text(self, result: Any) -> str:
        """Return the text that the host shows for a call, without its own words around it."""


class Messages:
    """Claude Code's: Anthropic's Messages."""

    def results(self, request: Json) -> list[Any] | None:
        if not any(tool["name"].startswith(f"mcp__{SERVER}__") for tool in request.get("tools", ())):
            return None
        said = [one["content"] for one in request["messages"] if one["role"] == "user"]
        blocks = [block for content in said if isinstance(content, list) for block in content]
        return [block["content"] for block in blocks if block["type"] == "tool_result"]

    def reply(self, call: Call | None, number: int) -> Reply:
        block: Json = {"type": "text", "text": ""}
        delta: Json = {"type": "text_delta", "text": "done"}
        if call is not None:
            name = f"mcp__{SERVER}__{call.tool}"
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
        reason = "end_turn" if call is None else "tool_use"
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": []}
        counts = {"input_tokens": 1, "output_tokens": 1}
        return _events(
            ("message_start", {"message": {**message, "stop_reason": None, "stop_sequence": None, "usage": counts}}),
            ("content_block_start", {"index": 0, "content_block": block}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": counts}),
            ("message_stop", {}),
        )

    def text(self, result: Any) -> str:
        return result if isinstance(result, str) else "".join(block["text"] for block in result)


class Responses:
    """Codex CLI's: OpenAI's Responses, with the tools of a server in a namespace."""

    def results(self, request: Json) -> list[Any] | None:
        if not any(tool.get("name") == f"mcp__{SERVER}" for tool in request.get("tools", ())):
            return None
        return [item["output"] for item in request["input"] if item["type"] == "function_call_output"]

    def reply(self, call: Call | None, number: int) -> Reply:
        item: Json = {"type": "message", "id": "msg", "role": "assistant"}
        if call is None:
            item["content"] = [{"type": "output_text", "text": "done"}]
        else:
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
            item |= {"name": call.tool, "namespace": f"mcp__{SERVER}", "arguments": json.dumps(call.arguments)}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        usage |= {"input_tokens_details": None, "output_tokens_details": None}
        return _events(
            ("response.created", {"response": {"id": "resp"}}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": {"id": "resp", "usage": usage}}),
        )

    def text(self, result: Any) -> str:
        text = result if isinstance(result, str) else "".join(item["text"] for item in result)
        return text.partition("\nOutput:")[2]


class GenerateContent:
    """Gemini CLI's: Google's generateContent."""

    def results(self, request: Json) -> list[Any] | None:
        declared = [one for tool in request.get("tools", ()) for one in tool.get("functionDeclarations", ())]
        if not any(one["name"].startswith(f"mcp_{SERVER}_") for one in declared):
            return None
        parts = [part for content in request["contents"] for part in content["parts"]]
        return [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]

    def reply(self, call: Call | None, number: int) -> Reply:
        part: Json = {"text": "done"}
        if call is not None:
            part = {"functionCall": {"name": f"mcp_{SERVER}_{call.tool}", "args": call.arguments}}
        counts = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        answer = json.dumps({"candidates": [candidate], "usageMetadata": counts})
        return Reply("text/event-stream", f"data: {answer}\r\n\r\n".encode())

    def text(self, result: Any) -> str:
        text: str = result["output"]
        return text.removeprefix("<untrusted_context>\n").removesuffix("\n</untrusted_context>")


def _events(*events: tuple[str, Json]) -> Reply:
    return Reply("text/event-stream", b"".join(_event(kind, data) for kind, data in events))


def _event(kind: str, data: Json) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()
