"""How Claude Code, Codex CLI and Gemini CLI speak to their models: what a request holds, and how a reply looks.

Each dialect knows as much of its host as a model needs that makes the calls of a list, one after another, and keeps
what comes back. In a long conversation, hosts also ask their models for a summary, or whether they are in a loop.
"""

import json
from typing import Any, NamedTuple, Protocol

from tests.web_site import Reply

SERVER = "tried"
"""What the server is called in the configuration of each host."""

Json = dict[str, Any]


class Call(NamedTuple):
    """A call that the model makes."""

    tool: str
    arguments: Json


class Dialect(Protocol):
    """How one host speaks to its model."""

    def offers_tools(self, request: Json) -> bool:
        """Return whether the model can call a tool of the server."""

    def results(self, request: Json) -> dict[str, Any]:
        """Return what the host shows the model for its calls, by their ids. Earlier ones may be missing or cut."""

    def count(self, tokens: int) -> Reply:
        """Say how many tokens a text has."""

    def aside(self, request: Json) -> Reply:
        """Answer a question that is no part of the conversation."""

    def reply(self, call: Call | None, number: int) -> Reply:
        """The call, the `number`th from 0 on; without one the end of the conversation."""

    def text(self, result: Any) -> str:
        """Return the text that the host shows for a call, without its own words around it."""


class Messages:
    """Claude Code's: Anthropic's Messages."""

    def offers_tools(self, request: Json) -> bool:
        return any(tool["name"].startswith(f"mcp__{SERVER}__") for tool in request.get("tools", ()))

    def results(self, request: Json) -> dict[str, Any]:
        said = [one["content"] for one in request.get("messages", ()) if one["role"] == "user"]
        blocks = [block for content in said if isinstance(content, list) for block in content]
        return {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}

    def count(self, tokens: int) -> Reply:
        return _json({"input_tokens": tokens})

    def aside(self, request: Json) -> Reply:
        return self.reply(None, 0)

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

    def offers_tools(self, request: Json) -> bool:
        return any(tool.get("name") == f"mcp__{SERVER}" for tool in request.get("tools", ()))

    def results(self, request: Json) -> dict[str, Any]:
        items = request.get("input", ())
        return {item["call_id"]: item["output"] for item in items if item["type"] == "function_call_output"}

    def count(self, tokens: int) -> Reply:
        return _json({"input_tokens": tokens})

    def aside(self, request: Json) -> Reply:
        return self.reply(None, 0)

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

    def offers_tools(self, request: Json) -> bool:
        declared = [one for tool in request.get("tools", ()) for one in tool.get("functionDeclarations", ())]
        return any(one["name"].startswith(f"mcp_{SERVER}_") for one in declared)

    def results(self, request: Json) -> dict[str, Any]:
        # When the host replaces old results by the names of files, it also gives them other ids.
        parts = request["contents"][-1]["parts"] if self.offers_tools(request) else []
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        return {answer["id"]: answer["response"] for answer in answers}

    def count(self, tokens: int) -> Reply:
        return _json({"totalTokens": tokens})

    def aside(self, request: Json) -> Reply:
        return _json(self._say({"text": json.dumps({"unproductive_state_confidence": 0})}))

    def reply(self, call: Call | None, number: int) -> Reply:
        part: Json = {"text": "done"}
        if call is not None:
            part = {"functionCall": {"name": f"mcp_{SERVER}_{call.tool}", "args": call.arguments}}
        return Reply(f"data: {json.dumps(self._say(part))}\r\n\r\n".encode(), "text/event-stream")

    def _say(self, part: Json) -> Json:
        counts = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        return {"candidates": [candidate], "usageMetadata": counts}

    def text(self, result: Any) -> str:
        text: str = result["output"]
        return text.removeprefix("<untrusted_context>\n").removesuffix("\n</untrusted_context>")


def _json(answer: Json) -> Reply:
    return Reply(json.dumps(answer).encode())


def _events(*events: tuple[str, Json]) -> Reply:
    return Reply(b"".join(_event(kind, data) for kind, data in events), "text/event-stream")


def _event(kind: str, data: Json) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()
