"""Prompts through the protocol: lists, rendering, elicitation and completion."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from servers.prompts.arguments import parse_values
from servers.prompts.features import prompts
from servers.prompts.format.definitions import Prompt
from shared.protocol.wire.jsonrpc import Request, Response
from tests.pictures import PNG
from tests.servers.peers import ERAS, InnerPeer, Json
from tests.servers.prompts.folders import OURS, SIMPLE, asking, front, put
from tests.servers.prompts.serving import completed, error, folder, got, inside, names, served, with_user
from tests.wire import PATIENCE, STATELESS, with_envelope

every_era = pytest.mark.parametrize("era", ERAS)
both_eras = pytest.mark.parametrize("era", ["2025-11-25", STATELESS])
WAV = b"RIFF\0\0\0\0WAVE"
ASKS = front(
    "title: Ask",
    "arguments:",
    "  - {name: style, enum: [short, long], default: short}",
    "  - {name: code, title: Code, description: The code., required: true, examples: [x = 1]}",
    "  - {name: count, type: number, required: true}",
    body="{{ style }} {{ code }} {{ count }}",
)
TYPES = front(
    "arguments:",
    *(
        f"  - {{name: {kind}, type: {kind}, required: true}}"
        for kind in ("string", "number", "boolean", "file", "url", "list")
    ),
    "  - {name: enum, enum: [a, b], required: true}",
    body="{{ string }} {{ number + 1 }} {{ not boolean }} {{ file }} {{ url }} {{ list[1] }} {{ enum }}",
)
TALK = front(
    "messages:",
    "  - {role: assistant, text: Well?}",
    "  - {image: a.jpg}",
    "  - {audio: a.wav}",
    "  - {resource: notes/a b.md}",
    "  - {resource: data.bin}",
)
FILES = {"a.jpg": PNG, "a.wav": WAV, "notes/a b.md": "Ä", "data.bin": b"\xff\0"}


# Listing


@every_era
async def test_prompts_are_listed_with_arguments_and_rendered(tmp_path: Path, era: str) -> None:
    async with served(folder(tmp_path, {"b.md": SIMPLE, "a.md": ASKS}), era=era) as peer:
        first, second = (await peer.request("prompts/list"))["result"]["prompts"]
        answer = await peer.request("prompts/get", name="a", arguments={"code": "{{ 1 }}", "count": "2", "style": ""})
    assert answer["result"]["description"] == "Something."
    message = {"role": "user", "content": {"type": "text", "text": "short {{ 1 }} 2"}}
    assert answer["result"]["messages"] == [message]
    assert second == {"name": "b", "description": "Something.", "arguments": []}
    assert (first["name"], first.get("title")) == ("a", "Ask" if era >= "2025-06-18" else None)
    code = {"name": "code", "description": "The code.", "required": True}
    if era >= "2025-06-18":
        code["title"] = "Code"
    assert first["arguments"][0] == code


async def test_a_long_list_has_pages(tmp_path: Path) -> None:
    files = {f"p{number:03}.md": "" if number == 150 else SIMPLE for number in range(201)}
    async with inside(folder(tmp_path, files)) as peer:
        first = (await peer.request("prompts/list"))["result"]
        assert (len(first["prompts"]), "nextCursor" in first) == (100, True)
        assert await names(peer) == sorted(one[:-3] for one in files if one != "p150.md")


# Immediate answers


async def at_once(peer: InnerPeer, method: str, **params: Any) -> Json | None:
    """Returns the result that exists as soon as the request was accepted."""
    connection = peer.running.connect(None, lambda: None)
    connection.receive(Request(1, method, with_envelope(params)))
    answers = [outgoing.message for outgoing in connection.outgoing()]
    await connection.close()
    return answers[0].result if answers and isinstance(answers[0], Response) else None


async def test_a_quickly_rendered_prompt_is_rendered_without_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "_NO_THREAD_SECONDS", PATIENCE)  # a busy machine takes longer
    asks = {"name": "a", "arguments": {"code": "x", "count": "2"}}
    ref = {"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "style", "value": "s"}}
    async with inside(folder(tmp_path, {"a.md": ASKS, "talk.md": TALK, **FILES})) as peer:
        assert await at_once(peer, "prompts/get", **asks) is None
        assert await at_once(peer, "completion/complete", **ref) is None
        later = await peer.request("prompts/get", **asks)
        await peer.request("prompts/get", name="talk")
        result = await at_once(peer, "prompts/get", **asks)
        assert result is not None
        assert result["messages"] == later["result"]["messages"]
        completion = await at_once(peer, "completion/complete", **ref)
        assert completion is not None
        assert completion["completion"]["values"] == ["short"]
        # A thread reads files and long arguments, and reports errors.
        assert await at_once(peer, "prompts/get", name="talk") is None
        assert await at_once(peer, "prompts/get", name="a", arguments={"code": "x" * 20_000, "count": "2"}) is None
        assert await at_once(peer, "prompts/get", name="a", arguments={"code": "x"}) is None


async def test_a_slowly_rendered_prompt_is_rendered_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "_NO_THREAD_SECONDS", PATIENCE)
    monkeypatch.setattr(prompts, "_LATE_SECONDS", -1.0)
    async with inside(folder(tmp_path, {"a.md": SIMPLE})) as peer:
        await peer.request("prompts/get", name="a")
        assert await at_once(peer, "prompts/get", name="a") is not None
        assert await at_once(peer, "prompts/get", name="a") is None
        await peer.request("prompts/get", name="a")
        assert await at_once(peer, "prompts/get", name="a") is None


# Rendering


@every_era
async def test_messages_keep_their_roles_and_files(tmp_path: Path, era: str) -> None:
    async with inside(folder(tmp_path, {"talk.md": TALK, **FILES}), era=era) as peer:
        messages = await got(peer, "talk")
    contents = [one["content"] for one in messages]
    assert [one["role"] for one in messages] == ["assistant", *["user"] * 5]
    assert contents[1] == {"type": "image", "mimeType": "image/png", "data": base64.b64encode(PNG).decode()}
    if era == "2024-11-05":
        assert contents[2]["text"] == "[audio/wav left out: this protocol version has no audio]"
    else:
        assert contents[2] == {"type": "audio", "mimeType": "audio/wav", "data": base64.b64encode(WAV).decode()}
    note, data = contents[3]["resource"], contents[4]["resource"]
    assert note == {"uri": "prompt://talk/files/notes/a%20b.md", "mimeType": "text/markdown", "text": "Ä"}
    assert (data["uri"], base64.b64decode(data["blob"])) == ("prompt://talk/files/data.bin", b"\xff\0")


WRONG: list[tuple[str, dict[str, str], str]] = [
    ("none", {}, "unknown prompt: none"),
    ("a", {}, "missing_arguments: the prompt 'a' needs: 'code', 'count'"),
    ("a", {"code": "x", "count": "two"}, "bad_arguments: 'count' is not a number: 'two'"),
    ("a", {"count": "1", "style": "wide"}, "bad_arguments: 'style' is not one of: 'short', 'long'"),
    (
        "a",
        {"cod": "x"},
        "bad_arguments: 'cod' is not an argument of this prompt. Its arguments: 'code', 'count', 'style'.",
    ),
    ("broken", {}, "bad_prompt: it has no text"),
    ("template", {}, "bad_template: 'nothing' is undefined"),
    ("lost", {}, "not_found: there is no file 'gone.png', or it can't be read"),
]


async def test_errors_of_prompts_and_arguments_are_explained(tmp_path: Path) -> None:
    files = {
        "a.md": ASKS,
        "broken.md": "",
        "template.md": front(OURS, body="{{ nothing }}"),
        "lost.md": front("messages:", "  - {image: gone.png}"),
    }
    async with inside(folder(tmp_path, files)) as peer:
        assert [await error(peer, name, **arguments) for name, arguments, _ in WRONG] == [one for *_, one in WRONG]


@pytest.mark.parametrize("module", ["prompts", "resources", "tools"])
async def test_a_prompt_is_rendered_in_the_version_its_arguments_were_checked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    def slow(prompt: Prompt, given: Mapping[str, str]) -> dict[str, Any]:
        put(library, {"a.md": asking("New {{ other }}", "other")})
        running[0].state.libraries.scan()
        return parse_values(prompt, given)

    library, running = folder(tmp_path / "lib", {"a.md": asking("Old {{ code }}", "code")}), list[Any]()
    monkeypatch.setattr(f"servers.prompts.features.{module}.parse_values", slow)
    async with inside(library) as peer:
        running.append(peer.running)
        if module == "prompts":
            (message,) = await got(peer, "a", code="x")
            rendered = message["content"]["text"]
        elif module == "resources":
            answer = await peer.request("resources/read", uri="prompt://a/rendered?code=x")
            rendered = answer["result"]["contents"][0]["text"]
        else:
            rendered = (await peer.text("render_prompt", name="a", arguments={"code": "x"})).splitlines()[1]
    assert rendered == "Old x"


# Elicitation


@both_eras
async def test_missing_arguments_are_elicited(tmp_path: Path, era: str) -> None:
    filled = {"code": "{{ x }}", "count": 7}
    async with with_user(folder(tmp_path, {"a.md": ASKS}), era=era, filled=filled) as peer:
        answer = await peer.request("prompts/get", {"name": "a", "arguments": {"style": "long", "code": ""}})
        assert answer["result"]["messages"][0]["content"]["text"] == "long {{ x }} 7"
        answer = await peer.request("prompts/get", {"name": "a", "arguments": {"code": "given"}})
        assert answer["result"]["messages"][0]["content"]["text"] == "short given 7"
    code = {"type": "string", "minLength": 1, "title": "Code", "description": "The code. For example: x = 1"}
    count = {"type": "number"}
    assert peer.forms == [
        {"type": "object", "properties": {"code": code, "count": count}, "required": ["code", "count"]},
        {"type": "object", "properties": {"count": count}, "required": ["count"]},
    ]
    assert peer.questions == ["The prompt 'a' needs more information first."] * 2


@both_eras
async def test_every_argument_type_can_be_elicited(tmp_path: Path, era: str) -> None:
    filled = {
        "string": "s",
        "number": 1.5,
        "boolean": False,
        "file": "a/b",
        "url": "https://example.org",
        "list": "x,y",
        "enum": "b",
    }
    async with with_user(folder(tmp_path, {"types.md": TYPES}), era=era, filled=filled) as peer:
        answer = await peer.request("prompts/get", {"name": "types", "arguments": {}})
    assert answer["result"]["messages"][0]["content"]["text"] == "s 2.5 True a/b https://example.org y b"
    (form,) = peer.forms
    assert form["properties"]["enum"] == {"type": "string", "enum": ["a", "b"]}


BADLY: list[tuple[Json | None, str]] = [
    (None, "missing_arguments: the prompt 'a' needs: 'count'; the user did not provide them"),
    ({"count": "many"}, "bad_arguments: 'count' is not a number: 'many'"),
    ({"count": ""}, "missing_arguments: the prompt 'a' needs: 'count'"),
    ({"code": "not asked for"}, "missing_arguments: the prompt 'a' needs: 'count'"),
]


@both_eras
async def test_a_declined_or_invalid_form_is_an_error(tmp_path: Path, era: str) -> None:
    async with with_user(folder(tmp_path, {"a.md": ASKS}), era=era, actions="decline cancel") as peer:
        for filled, expected in (BADLY[0], *BADLY):
            peer.filled = filled
            answer = await peer.request("prompts/get", {"name": "a", "arguments": {"code": "x"}})
            assert (answer["error"]["code"], answer["error"]["message"]) == (-32602, expected)
    assert len(peer.questions) == len(BADLY) + 1


async def test_invalid_arguments_prevent_an_elicitation(tmp_path: Path) -> None:
    async with with_user(folder(tmp_path, {"a.md": ASKS}), era="2025-11-25") as peer:
        answer = await peer.request("prompts/get", {"name": "a", "arguments": {"style": "wide"}})
    assert (answer["error"]["code"], peer.questions) == (-32602, [])


@both_eras
async def test_missing_arguments_are_an_error_without_elicitation(tmp_path: Path, era: str) -> None:
    async with inside(folder(tmp_path, {"a.md": ASKS}), era=era) as peer:
        assert await error(peer, "a", count="1") == "missing_arguments: the prompt 'a' needs: 'code'"


# Completing


@both_eras
async def test_arguments_are_completed(tmp_path: Path, era: str) -> None:
    async with inside(folder(tmp_path, {"a.md": ASKS, "types.md": TYPES}), era=era) as peer:
        assert await completed(peer, "a", "style", "") == ["short", "long"]
        assert await completed(peer, "a", "style", "L") == ["long"]
        assert await completed(peer, "a", "code", "x") == ["x = 1"]
        assert await completed(peer, "types", "boolean", "t") == ["true"]
        assert await completed(peer, "types", "file", "") == []
        for name, argument, expected in (("none", "x", "unknown"), ("a", "cod", "'cod' is no")):
            params = {"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": argument, "value": ""}}
            answer = await peer.request("completion/complete", **params)
            assert answer["error"]["code"] == -32602
            assert expected in answer["error"]["message"]


async def test_file_completions_come_from_the_files_directories(tmp_path: Path) -> None:
    library = folder(tmp_path / "library", {"types.md": TYPES})
    one = folder(tmp_path / "one", {"src/a.py": "", "src/b.py": "", "README.md": ""})
    two = folder(tmp_path / "two", {"src/c.py": ""})
    async with inside("--files", one, "--files", two, library) as peer:
        assert await completed(peer, "types", "file", "") == ["README.md", "src/"]
        assert await completed(peer, "types", "file", "src/") == ["src/a.py", "src/b.py", "src/c.py"]
        assert await completed(peer, "types", "file", "../library/") == []
