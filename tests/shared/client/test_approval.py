"""`act_of`: the acts that need a permit, and their names."""

from typing import Any

import pytest

from shared.client.approval import Act, act_of

FORM = {"message": "Your name?", "requestedSchema": {"type": "object"}}


@pytest.mark.parametrize(
    ("method", "params", "act"),
    [
        ("tools/call", {"name": "add", "arguments": {"a": 1}}, Act("s", "call", "add", {"a": 1})),
        ("tools/call", {"name": "add"}, Act("s", "call", "add", {})),
        ("resources/read", {"uri": "memo://one"}, Act("s", "read", "memo://one", {})),
        ("prompts/get", {"name": "plan", "arguments": {"goal": "it"}}, Act("s", "prompt", "plan", {"goal": "it"})),
        ("elicitation/create", FORM, Act("s", "elicit", "elicitation/create", FORM)),
        ("sampling/createMessage", {"maxTokens": 9}, Act("s", "sample", "sampling/createMessage", {"maxTokens": 9})),
        ("roots/list", {}, Act("s", "roots", "roots/list", {})),
    ],
)
def test_calls_reads_prompts_and_server_requests_are_acts(method: str, params: dict[str, Any], act: Act) -> None:
    assert act_of("s", method, params) == act


@pytest.mark.parametrize("method", ["tools/list", "ping", "server/discover", "completion/complete"])
def test_other_methods_are_no_acts(method: str) -> None:
    assert act_of("s", method, {}) is None


def test_changes_to_an_act_do_not_change_the_request() -> None:
    params: dict[str, Any] = {"name": "add", "arguments": {"a": {"b": 1}}}
    act = act_of("s", "tools/call", params)
    assert act is not None
    assert isinstance(act.arguments, dict)
    act.arguments["a"].clear()
    act.arguments.clear()
    assert params["arguments"] == {"a": {"b": 1}}
