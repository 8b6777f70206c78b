"""Files and directories as resources, through the protocol and in one process."""

import base64
import json
import os

import pytest

from servers.filesystem.features.entries import moment_of
from servers.filesystem.server import app
from servers.filesystem.settings import Settings
from shared.kit.rooted.entries import etag_of
from shared.protocol.types.resources import CONDITIONAL_READS, ETAG
from tests.shared.server.peer import ERAS, NEWEST_HANDSHAKE, STATELESS, talking

TEMPLATE = "file:///{+path}{?offset,length}"
WHEN = 1_700_000_000


@pytest.fixture
def ask(root):
    async def call(method, params, version=NEWEST_HANDSHAKE, **settings):
        async with talking(app, version, settings=Settings(roots=[root], **settings)) as peer:
            return await peer.request(method, params)

    return call


@pytest.fixture
def read(ask):
    """The one piece of contents of a URI, or the error."""

    async def call(uri, **settings):
        answer = await ask("resources/read", {"uri": uri}, **settings)
        return answer["error"] if "error" in answer else answer["result"]["contents"][0]

    return call


@pytest.mark.parametrize("query", ["", "?offset=1"])
@pytest.mark.parametrize("data", [b"text", b"\xff\0"])
async def test_programs_are_told_when_a_file_was_changed(root, read, data, query):
    (root / "a").write_bytes(data)
    os.utime(root / "a", (WHEN, WHEN))
    assert (await read(f"{(root / 'a').as_uri()}{query}"))["_meta"]["lastModified"] == "2023-11-14T22:13:20Z"


# Reading again


@pytest.mark.parametrize("version", ERAS)
async def test_a_file_is_sent_again_once_it_was_touched(root, version):
    (root / "a.txt").write_text("as it was")
    params, takes_it = {"uri": (root / "a.txt").as_uri()}, {"extensions": {CONDITIONAL_READS: {}}}
    async with talking(app, version, takes_it, settings=Settings(roots=[root])) as peer:
        first = (await peer.request("resources/read", params))["result"]
        same = (await peer.request("resources/read", params, **{ETAG: first["_meta"][ETAG]}))["result"]
        os.utime(root / "a.txt", (WHEN, WHEN))
        touched = (await peer.request("resources/read", params, **{ETAG: first["_meta"][ETAG]}))["result"]
    assert same["contents"] == []
    # Whoever edits it needs to know the etag that the file has now.
    assert touched["contents"][0]["_meta"]["etag"] == etag_of((root / "a.txt").stat())


# A file over the budget


@pytest.mark.parametrize("name", ["a.txt", "a.bin"])
async def test_a_file_over_the_budget_names_its_size_and_how_to_read_a_part(root, read, name):
    (root / name).write_bytes(b"x" * 2_000_000)
    uri = (root / name).as_uri()
    error = await read(uri)
    template = f"{uri}{{?offset,length}}"
    assert error["code"] == -32602
    assert "too_large: has 2000000 bytes; the limit is" in error["message"]
    assert error["message"].endswith(f"read a part, by bytes: {template}")
    assert error["data"] == {"uri": uri, "uriTemplate": template}


async def test_f20_text_has_the_budget_of_a_read_and_a_picture_that_of_a_result(root, read):
    (root / "a.txt").write_bytes(b"x" * 100_001)
    (root / "a.png").write_bytes(b"\0" * 600_000)
    assert (
        "has 100001 bytes; the limit is 100000 of text as JSON" in (await read((root / "a.txt").as_uri()))["message"]
    )
    assert len((await read((root / "a.txt").as_uri(), max_read=200_000))["text"]) == 100_001
    assert len(base64.b64decode((await read((root / "a.png").as_uri()))["blob"])) == 600_000


async def test_the_parts_of_a_file_are_the_whole(root, read):
    data = "één \n".encode() * 40_000 + b"\xff\0"
    (root / "a.bin").write_bytes(data)
    parts, size = b"", None
    while size is None or len(parts) < size:
        contents = await read(f"{(root / 'a.bin').as_uri()}?offset={len(parts)}&length=99999")
        parts += contents["text"].encode() if "text" in contents else base64.b64decode(contents["blob"])
        size = contents["_meta"]["size"]
        assert contents["_meta"]["etag"] == etag_of((root / "a.bin").stat())
    assert parts == data


@pytest.mark.parametrize(
    ("query", "text"), [("offset=2", "234"), ("length=2", "01"), ("offset=1&length=2", "12"), ("offset=9", "")]
)
async def test_a_part_by_bytes(root, read, query, text):
    (root / "a.txt").write_text("01234")
    assert (await read(f"{(root / 'a.txt').as_uri()}?{query}"))["text"] == text


@pytest.mark.parametrize("size", [5, 100_000])
@pytest.mark.parametrize("offset", [2**62, 2**63 - 1, 2**63, 2**64, 10**40])
async def test_a_part_behind_the_end_is_empty_however_far(root, read, size, offset):
    (root / "a.txt").write_text("x" * size)
    uri = f"{(root / 'a.txt').as_uri()}?offset={offset}&length={offset}"
    contents = await read(uri)
    assert (contents["text"], contents["_meta"]["size"]) == ("", size)


async def test_a_part_that_is_long_as_json_is_bytes(root, read):
    (root / "a.txt").write_bytes(b"\x01" * 70_000)
    assert len(base64.b64decode((await read(f"{(root / 'a.txt').as_uri()}?length=60000"))["blob"])) == 60_000


@pytest.mark.parametrize("query", ["offset=-1", "length=x", "offset="])
async def test_a_part_that_means_nothing_is_refused(root, read, query):
    (root / "a.txt").write_text("01234")
    assert (await read(f"{(root / 'a.txt').as_uri()}?{query}"))["code"] == -32602


# What kind


async def test_text_in_another_charset_is_text_and_its_charset_named(root, read):
    (root / "a.txt").write_bytes("Señor Müller\n".encode("latin-1"))
    (root / "a.json").write_bytes('{"a": "é"}'.encode("utf-16"))
    contents = await read((root / "a.txt").as_uri())
    assert (contents["text"], contents["_meta"]["charset"]) == ("Señor Müller\n", "cp1252")
    assert (await read((root / "a.json").as_uri()))["text"] == '{"a": "é"}'


async def test_f10_a_name_that_is_no_utf_8_can_be_listed_and_read(root, ask, read):
    (root / os.fsdecode(b"caf\xe9")).write_text("hello")
    listed = (await ask("resources/list", {}))["result"]["resources"]
    assert listed[1]["name"] == "caf\\xe9"
    assert (await read(listed[1]["uri"]))["text"] == "hello"


# Directories


@pytest.fixture
def folder(root):
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("12345")
    (root / "sub" / "link").symlink_to("a.txt")
    (root / "sub" / "deep").mkdir()
    os.utime(root / "sub" / "a.txt", (WHEN, WHEN))
    return root / "sub"


@pytest.mark.parametrize("slash", ["", "/"])
async def test_a_directory_is_read_as_the_list_of_its_resources(folder, read, slash):
    contents = await read(f"{folder.as_uri()}{slash}")
    assert contents["mimeType"] == "application/json"
    listing = json.loads(contents["text"])
    assert (listing["total"], listing["truncated"]) == (3, False)
    assert listing["resources"][0] == {
        "uri": (folder / "a.txt").as_uri(),
        "name": "a.txt",
        "size": 5,
        "mimeType": "text/plain",
        "annotations": {"lastModified": "2023-11-14T22:13:20Z"},
    }
    assert [one["mimeType"] for one in listing["resources"][1:]] == ["inode/directory"]


async def test_what_is_denied_is_not_among_the_resources(root, ask, read, complete):
    (root / ".env").touch()
    assert [one["uri"] for one in (await ask("resources/list", {}))["result"]["resources"]] == [root.as_uri()]
    assert json.loads((await read(root.as_uri()))["text"])["resources"] == []
    assert await complete(f"{root.as_uri().removeprefix('file:///')}/.e") == []


async def test_a_large_directory_is_cut_at_the_budget_and_says_so(root, read):
    for number in range(300):
        (root / f"file {number}").touch()
    contents = await read(root.as_uri(), max_read=5_000)
    listing = json.loads(contents["text"])
    assert (listing["total"], listing["truncated"]) == (300, True)
    assert 10 < len(listing["resources"]) < 300
    assert len(json.dumps(contents["text"])) <= 5_000


async def test_the_list_has_the_root_first_then_what_stands_in_it(folder, root, ask):
    (root / "b.md").touch()
    (root / "pipe").unlink(missing_ok=True)
    os.mkfifo(root / "pipe")
    listed = (await ask("resources/list", {}))["result"]["resources"]
    assert [(one["uri"], one["mimeType"]) for one in listed] == [
        (root.as_uri(), "inode/directory"),
        ((root / "b.md").as_uri(), "text/markdown"),
        (folder.as_uri(), "inode/directory"),
    ]
    assert all(one["annotations"]["lastModified"].endswith("Z") for one in listed)


def test_a_time_that_no_calendar_has_is_left_out():
    assert moment_of(WHEN) == "2023-11-14T22:13:20Z"
    assert moment_of(2.0**60) is None


async def test_nothing_of_the_disk_may_be_kept_without_asking_again(root, ask):
    for method, params in (("resources/list", {}), ("resources/read", {"uri": root.as_uri()})):
        result = (await ask(method, params, STATELESS))["result"]
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


# Completion


@pytest.fixture
def complete(ask):
    async def call(typed, version=NEWEST_HANDSHAKE):
        argument = {"name": "path", "value": typed}
        params = {"ref": {"type": "ref/resource", "uri": TEMPLATE}, "argument": argument}
        return (await ask("completion/complete", params, version))["result"]["completion"]["values"]

    return call


@pytest.mark.parametrize("version", ERAS)
async def test_a_path_is_completed(folder, complete, version):
    start = folder.as_uri().removeprefix("file:///")
    assert await complete(start[: -len("ub")], version) == [f"{start}/"]
    assert await complete(f"{start}/", version) == [f"{start}/a.txt", f"{start}/deep/", f"{start}/link"]
    assert await complete(f"{start}/d", version) == [f"{start}/deep/"]


@pytest.mark.parametrize("length", [0, 1, -1])
async def test_a_path_that_is_not_yet_in_a_root_is_completed_to_it(root, complete, length):
    path = root.as_uri().removeprefix("file:///")
    assert await complete(path[:length] if length else "") == [f"{path}/"]


async def test_names_are_completed_as_they_are_written_in_a_uri(root, complete):
    (root / "a b").touch()
    (root / "a?b").touch()
    path = root.as_uri().removeprefix("file:///")
    assert await complete(f"{path}/a") == [f"{path}/a%20b", f"{path}/a%3Fb"]
    assert await complete(f"{path}/a ") == await complete(f"{path}/a%20") == [f"{path}/a%20b"]


@pytest.mark.parametrize("typed", ["etc/pass", "{root}/../root_evil/", "{root}/none/", "{root}/%zz/"])
async def test_nothing_outside_is_completed(root, outside, complete, typed):
    assert await complete(typed.replace("{root}", root.as_uri().removeprefix("file:///"))) == []


# Hints


async def test_an_allowed_directory_has_the_end_of_its_path_as_title(root, ask):
    (one,) = (await ask("resources/list", {}))["result"]["resources"]
    assert (one["name"], one["title"]) == (str(root), root.name)


@pytest.mark.parametrize(
    ("name", "hints"),
    [
        ("README.md", {"priority": 0.8}),
        ("readme", {"priority": 0.8}),
        (".gitignore", {"priority": 0.2}),
        ("node_modules", {"priority": 0.2}),
        ("uv.lock", {"priority": 0.2}),
        ("package-lock.json", {"priority": 0.2}),
        ("film.mp4", {"audience": ["user"]}),
        ("all.zip", {"audience": ["user"]}),
        ("main.py", {}),
        ("lock", {}),
    ],
)
async def test_few_names_say_how_much_an_entry_matters_and_to_whom(root, ask, name, hints):
    (root / name).touch()
    _, listed = (await ask("resources/list", {}))["result"]["resources"]
    del listed["annotations"]["lastModified"]
    assert (listed["annotations"], "title" in listed) == (hints, False)
