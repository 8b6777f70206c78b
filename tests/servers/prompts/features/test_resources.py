"""Prompts as resources through the protocol."""

import json
import os
from pathlib import Path

import pytest

from servers.prompts.features import resources
from tests.servers.peers import Json, Peer
from tests.servers.prompts.folders import SIMPLE, front
from tests.servers.prompts.serving import folder, inside
from tests.wire import STATELESS

both_eras = pytest.mark.parametrize("era", ["2025-11-25", STATELESS])
REVIEW = front(
    "name: review",
    "title: Review",
    "tags: [code]",
    "arguments:",
    "  - {name: path, required: true}",
    "  - {name: deep, type: boolean}",
    body="Look at {{ path }}{% if deep %}, deeply{% endif %}.",
)
PARTS = ["- text: Hello.", "- {role: assistant, text: Hi.}", "- image: a.png", "- resource: b.csv"]
TALK = front("messages:", *PARTS, body="")


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    """Returns a library."""
    files = {"git/review.md": REVIEW, "talk.md": TALK, "a.png": b"\x89PNG\0", "b.csv": "1,2", "wrong.md": ""}
    return folder(tmp_path / "lib", files)


async def read(peer: Peer, uri: str) -> Json:
    """Returns the only contents of a resource."""
    (contents,) = (await peer.request("resources/read", uri=uri))["result"]["contents"]
    found: Json = contents
    return found


async def refusal(peer: Peer, uri: str) -> tuple[int, str]:
    """Returns code and message of the error for a resource."""
    error = (await peer.request("resources/read", uri=uri))["error"]
    return error["code"], error["message"]


@both_eras
async def test_a_prompt_is_a_resource_with_its_source(lib: Path, era: str) -> None:
    async with inside(lib, era=era) as peer:
        contents = await read(peer, "prompt://review")
    assert contents == {"uri": "prompt://review", "mimeType": "text/markdown", "text": REVIEW}


@both_eras
async def test_a_rendered_resource_takes_arguments_from_its_query(lib: Path, era: str) -> None:
    async with inside(lib, era=era) as peer:
        plain = await read(peer, "prompt://review/rendered?path=a%20%26%7B%7Bb%7D%7D")
        deep = await read(peer, "prompt://review/rendered?deep=yes&path=c")
    assert plain["text"] == "Look at a &{{b}}."
    assert deep["text"] == "Look at c, deeply."


async def test_several_messages_have_roles_as_headings(lib: Path) -> None:
    async with inside(lib) as peer:
        contents = await read(peer, "prompt://talk/rendered")
    image = "## user\n\n[image: a.png, image/png, 5 bytes]"
    assert contents["text"] == f"## user\n\nHello.\n\n## assistant\n\nHi.\n\n{image}\n\n## user\n\nb.csv:\n\n1,2"


WRONG = {
    "": "missing_arguments: the prompt 'review' needs: 'path'",
    "?path=a&deep=perhaps": "bad_arguments: 'deep' is not yes or no: 'perhaps'",
    "?path=a&other=b": "bad_arguments: 'other' is not an argument of this prompt. Its arguments: 'path', 'deep'.",
    "?path=a&path=b": "bad_arguments: an argument is given twice",
    "?" + "&".join(f"a{number}=" for number in range(65)): "bad_arguments: the query has more than 64 arguments",
}


async def test_invalid_arguments_are_refused(lib: Path) -> None:
    async with inside(lib) as peer:
        for query, reason in WRONG.items():
            assert await refusal(peer, f"prompt://review/rendered{query}") == (-32602, reason)


async def test_an_unknown_resource_is_not_found(lib: Path) -> None:
    async with inside(lib) as peer:
        for uri in ("prompt://git-review", "prompt://git/review.md", "prompt://x/rendered", "prompt://..%2Fa"):
            assert (await refusal(peer, uri))[0] == -32002


async def test_a_new_broken_file_is_readable_but_not_rendered(lib: Path) -> None:
    async with inside(lib) as peer:
        assert (await read(peer, "prompt://wrong"))["text"] == ""
        code, reason = await refusal(peer, "prompt://wrong/rendered")
    assert (code, reason) == (-32602, "bad_prompt: it has no text")


async def test_the_index_lists_prompts_libraries_and_problems(tmp_path: Path, lib: Path) -> None:
    other = folder(tmp_path / "other", {"review.md": SIMPLE, "more.md": SIMPLE})
    async with inside(lib, other) as peer:
        contents = await read(peer, "prompt://")
    assert contents["mimeType"] == "application/json"
    assert str(tmp_path) not in contents["text"]
    index = json.loads(contents["text"])
    assert index["libraries"] == [{"folder": "lib", "prompts": 2}, {"folder": "other", "prompts": 2}]
    more, review, talk = index["prompts"]
    assert more == {"name": "more", "uri": "prompt://more", "library": 1, "file": "more.md"}
    titled = {"name": "review", "title": "Review", "tags": ["code"], "uri": "prompt://review"}
    assert review == {**titled, "library": 0, "file": "git/review.md"}
    assert talk["name"] == "talk"
    reason = "it has no text"
    assert index["problems"] == [{"library": 0, "file": "wrong.md", "line": 1, "reason": reason}]
    assert not index["truncated"]


@pytest.mark.parametrize(("limit", "truncated"), [(2, False), (1, True)])
async def test_a_truncated_index_says_so(
    lib: Path, monkeypatch: pytest.MonkeyPatch, *, limit: int, truncated: bool
) -> None:
    (lib / "wrong.md").unlink()
    monkeypatch.setattr(resources, "_MAX_LISTED", limit)
    async with inside(lib) as peer:
        index = json.loads((await read(peer, "prompt://"))["text"])
    assert (len(index["prompts"]), index["truncated"]) == (limit, truncated)


@both_eras
async def test_resources_are_listed_and_templates_completed(lib: Path, era: str) -> None:
    async with inside(lib, era=era) as peer:
        listed = (await peer.request("resources/list"))["result"]["resources"]
        templates = (await peer.request("resources/templates/list"))["result"]["resourceTemplates"]
        values = [await completed(peer, one["uriTemplate"], "k") for one in templates[:3]]
    uris = [one["uri"] for one in listed if not one["uri"].startswith("skill:")]
    assert uris == ["prompt://", "prompt://review", "prompt://talk"]
    review = next(one for one in listed if one["uri"] == "prompt://review")
    assert (review["title"], review["description"]) == ("Review", "Something.")
    uri_templates = [one["uriTemplate"] for one in templates]
    ours = ["prompt://{name}", "prompt://{name}/rendered{?args*}", "prompt://{name}/files/{+path}"]
    assert uri_templates == [*ours, "skill://{+path}"]
    assert values == [["talk"], ["talk"], ["talk"]]


async def completed(peer: Peer, template: str, typed: str) -> list[str]:
    ref = {"type": "ref/resource", "uri": template}
    answer = await peer.request("completion/complete", ref=ref, argument={"name": "name", "value": typed})
    values: list[str] = answer["result"]["completion"]["values"]
    return values


@both_eras
async def test_an_embedded_file_is_readable_by_its_uri(lib: Path, era: str) -> None:
    (lib / "b.csv").write_text("3,4")
    async with inside(lib, era=era) as peer:
        messages = (await peer.request("prompts/get", name="talk"))["result"]["messages"]
        embedded = messages[3]["content"]["resource"]
        assert embedded["text"] == "3,4"
        assert await read(peer, embedded["uri"]) == embedded
        assert (await read(peer, "prompt://talk/files/a.png"))["mimeType"] == "image/png"


async def test_other_files_and_links_are_not_readable(tmp_path: Path, lib: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    (lib / "more.md").write_text(front("messages:", *(f"  - resource: {one}" for one in ("../outside", "gone.csv"))))
    paths = ["git/review.md", "talk.md", "../outside", "%2e%2e/outside", "./b.csv", "b.csv/", "b%00.csv", "gone.csv"]
    async with inside(lib) as peer:
        (lib / "b.csv").unlink()
        (lib / "b.csv").symlink_to(tmp_path / "outside")
        for path in (*paths, "b.csv"):
            for name in ("talk", "more", "none"):
                code, reason = await refusal(peer, f"prompt://{name}/files/{path}")
                assert (code, "secret" in reason) == (-32002, False), path


async def test_a_file_name_outside_utf8_is_a_problem_in_the_index(tmp_path: Path, lib: Path) -> None:
    (lib / os.fsdecode(b"\xff.md")).write_text(SIMPLE)
    async with inside(lib) as peer:
        listed = (await peer.request("resources/list"))["result"]["resources"]
        index = json.loads((await read(peer, "prompt://"))["text"])
    assert "prompt://talk" in [one["uri"] for one in listed]
    assert "\\udcff.md" in [one["file"] for one in index["problems"]]


async def test_special_characters_of_a_name_are_percent_encoded(tmp_path: Path) -> None:
    lib = folder(tmp_path / "lib", {"é a?.md": SIMPLE})
    async with inside(lib) as peer:
        listed = (await peer.request("resources/list"))["result"]["resources"]
        assert [one["uri"] for one in listed][1:] == ["prompt://%C3%A9%20a%3F"]
        assert (await read(peer, "prompt://%C3%A9%20a%3F/rendered"))["text"] == "Say it."
