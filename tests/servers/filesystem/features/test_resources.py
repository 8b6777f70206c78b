"""Files and directories as resources, through the protocol and in one process."""

import base64
import json
import os

import pytest

from servers.filesystem.features.entries import format_time
from servers.filesystem.server import app
from servers.filesystem.settings import Settings
from servers.filesystem.watch.tree import EntryQuota
from shared.program.files.entries import etag_of
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
    """The single contents of a URI, or the error."""

    async def call(uri, **settings):
        answer = await ask("resources/read", {"uri": uri}, **settings)
        return answer["error"] if "error" in answer else answer["result"]["contents"][0]

    return call


async def test_contents_have_the_time_of_the_last_modification(root, read):
    for data in (b"text", b"\xff\0"):
        (root / "a").write_bytes(data)
        os.utime(root / "a", (WHEN, WHEN))
        for query in ("", "?offset=1"):
            contents = await read(f"{(root / 'a').as_uri()}{query}")
            assert contents["_meta"]["lastModified"] == "2023-11-14T22:13:20Z"


# Conditional reads


@pytest.mark.parametrize("version", ERAS)
async def test_a_conditional_read_sends_a_file_again_after_a_touch(root, version):
    (root / "a.txt").write_text("as it was")
    params, takes_it = {"uri": (root / "a.txt").as_uri()}, {"extensions": {CONDITIONAL_READS: {}}}
    async with talking(app, version, takes_it, settings=Settings(roots=[root])) as peer:
        first = (await peer.request("resources/read", params))["result"]
        same = (await peer.request("resources/read", params, **{ETAG: first["_meta"][ETAG]}))["result"]
        os.utime(root / "a.txt", (WHEN, WHEN))
        touched = (await peer.request("resources/read", params, **{ETAG: first["_meta"][ETAG]}))["result"]
    assert same["contents"] == []
    # A client that edits the file needs its current etag.
    assert touched["contents"][0]["_meta"]["etag"] == etag_of((root / "a.txt").stat())


# A file over the budget


TEXTS = {
    "lines": "één line of it\n".encode() * 30_000,
    "one line": "é".encode() * 200_001,
    "controls": b"\x01" * 300_000,
    "long lines": (b"x" * 200_000 + b"\n") * 3,
}


@pytest.mark.parametrize("name", TEXTS)
async def test_each_part_of_a_large_text_names_the_next_part(root, ask, name):
    (root / "a.txt").write_bytes(TEXTS[name])
    uri, read = (root / "a.txt").as_uri(), []
    while uri is not None and len(read) < 100:
        contents = (await ask("resources/read", {"uri": uri}))["result"]["contents"][0]
        assert len(json.dumps(contents, ensure_ascii=False)) < 102_000
        read.append(contents["text"].encode())
        assert contents["_meta"]["size"] == len(TEXTS[name])
        uri = contents["_meta"].get("next")
    assert b"".join(read) == TEXTS[name]
    assert len(read) > 1
    if name == "lines":
        assert all(part.endswith(b"\n") for part in read)


@pytest.mark.parametrize("version", ERAS)
async def test_the_first_part_has_the_requested_uri(root, version):
    (root / "a.rs").write_bytes(b"// a\n" * 40_000)
    uri = (root / "a.rs").as_uri()
    async with talking(app, version, settings=Settings(roots=[root])) as peer:
        first = (await peer.request("resources/read", {"uri": uri}))["result"]["contents"][0]
        second = (await peer.request("resources/read", {"uri": first["_meta"]["next"]}))["result"]["contents"][0]
    assert (first["uri"], first["mimeType"]) == (uri, "text/x-rust")
    assert first["_meta"]["next"] == f"{uri}?offset={len(first['text'])}"
    assert second["uri"] == f"{uri}?offset={len(first['text'])}&length={len(second['text'])}"


@pytest.mark.parametrize("version", ERAS)
async def test_every_listed_resource_can_be_read(root, version):
    contents = {"a.txt": b"x" * 2_000_000, "b.bin": b"\0" * 2_000_000, "c.txt": "é".encode("latin-1") * 150_000}
    contents |= {
        "d.txt": b"\xef\xbb\xbf" + b"x" * 150_000,
        "e.txt": "é".encode("utf-16") * 60_000,
        "f": b"",
        "g%?#": b"x",
    }
    contents |= {"long name ' .md": b"x\n" * 100_000}
    for name, data in contents.items():
        (root / name).write_bytes(data)
    other = root.with_name("other")
    other.mkdir()
    (other / "h.txt").write_text("h")
    async with talking(app, version, settings=Settings(roots=[root, other])) as peer:
        listed = (await peer.request("resources/list"))["result"]["resources"]
        paths = [root, other, *(root / name for name in contents), other / "h.txt"]
        assert sorted(resource["uri"] for resource in listed) == sorted(path.as_uri() for path in paths)
        for resource in listed:
            answer = await peer.request("resources/read", {"uri": resource["uri"]})
            assert answer["result"]["contents"][0]["uri"] == resource["uri"]


async def test_text_is_limited_by_max_read_and_an_image_by_max_result(root, read):
    (root / "a.txt").write_bytes(b"x" * 100_001)
    (root / "a.png").write_bytes(b"\0" * 600_000)
    text, picture = (root / "a.txt").as_uri(), (root / "a.png").as_uri()
    assert len((await read(text))["text"]) < 100_000
    assert len((await read(text, max_read=200_000))["text"]) == 100_001
    assert len(base64.b64decode((await read(picture))["blob"])) == 600_000


async def test_the_parts_of_a_file_join_to_the_whole(root, read):
    data = "één \n".encode() * 40_000 + b"\xff\0"
    (root / "a.bin").write_bytes(data)
    parts, size = b"", None
    while size is None or len(parts) < size:
        contents = await read(f"{(root / 'a.bin').as_uri()}?offset={len(parts)}&length=99999")
        parts += contents["text"].encode() if "text" in contents else base64.b64decode(contents["blob"])
        size = contents["_meta"]["size"]
        assert contents["_meta"]["etag"] == etag_of((root / "a.bin").stat())
    assert parts == data


async def test_a_byte_range_beyond_the_end_is_empty(root, read):
    (root / "a.txt").write_text("01234")
    (root / "b.txt").write_text("x" * 100_000)
    small, large = (root / "a.txt").as_uri(), (root / "b.txt").as_uri()
    parts = {"offset=2": "234", "length=2": "01", "offset=1&length=2": "12", "offset=9": ""}
    assert {query: (await read(f"{small}?{query}"))["text"] for query in parts} == parts
    for offset in (2**62, 2**63 - 1, 2**63, 2**64, 10**40):
        for uri, size in ((small, 5), (large, 100_000)):
            contents = await read(f"{uri}?offset={offset}&length={offset}")
            assert (contents["text"], contents["_meta"]["size"]) == ("", size)
    for query in ("offset=-1", "length=x", "offset="):
        assert (await read(f"{small}?{query}"))["code"] == -32602
    # Text that is long as JSON is returned as bytes.
    (root / "b.txt").write_bytes(b"\x01" * 70_000)
    assert len(base64.b64decode((await read(f"{large}?length=60000"))["blob"])) == 60_000


# Media types


async def test_text_in_another_charset_is_decoded_and_its_charset_named(root, read):
    (root / "a.txt").write_bytes("Señor Müller\n".encode("latin-1"))
    (root / "a.json").write_bytes('{"a": "é"}'.encode("utf-16"))
    contents = await read((root / "a.txt").as_uri())
    assert (contents["text"], contents["_meta"]["charset"]) == ("Señor Müller\n", "cp1252")
    assert (await read((root / "a.json").as_uri()))["text"] == '{"a": "é"}'


# Directories


@pytest.fixture
def folder(root):
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("12345")
    (root / "sub" / "link").symlink_to("a.txt")
    (root / "sub" / "deep").mkdir()
    os.utime(root / "sub" / "a.txt", (WHEN, WHEN))
    return root / "sub"


async def test_reading_a_directory_returns_the_list_of_its_resources(folder, read):
    for slash in ("", "/"):
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
    assert [resource["mimeType"] for resource in listing["resources"][1:]] == ["inode/directory"]


async def test_denied_files_are_not_listed_or_completed(root, read, complete):
    (root / ".env").touch()
    assert json.loads((await read(root.as_uri()))["text"])["resources"] == []
    assert await complete(f"{root.as_uri().removeprefix('file:///')}/.e") == []


async def test_the_list_of_a_large_directory_is_marked_as_truncated(root, read):
    for number in range(300):
        (root / f"file {number}").touch()
    contents = await read(root.as_uri(), max_read=5_000)
    listing = json.loads(contents["text"])
    assert (listing["total"], listing["truncated"]) == (300, True)
    assert 10 < len(listing["resources"]) < 300
    assert len(json.dumps(contents["text"])) <= 5_000


async def test_resources_list_has_the_root_first_and_its_entries_after_it(folder, root, ask, read):
    (root / "b.md").touch()
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"caf\xe9")).write_text("hello")
    listed = (await ask("resources/list", {}))["result"]["resources"]
    odd = listed.pop(2)
    assert (odd["name"], (await read(odd["uri"]))["text"]) == ("caf\\xe9", "hello")
    assert [(resource["uri"], resource["mimeType"]) for resource in listed] == [
        (root.as_uri(), "inode/directory"),
        ((root / "b.md").as_uri(), "text/markdown"),
        (folder.as_uri(), "inode/directory"),
    ]
    assert all(resource["annotations"]["lastModified"].endswith("Z") for resource in listed)


def test_a_time_beyond_the_calendar_is_omitted():
    assert format_time(2.0**60) is None


async def test_file_results_are_private_and_not_cacheable(root, ask):
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


async def test_completed_names_are_percent_encoded(root, complete):
    (root / "a b").touch()
    (root / "a?b").touch()
    path = root.as_uri().removeprefix("file:///")
    assert await complete(f"{path}/a") == [f"{path}/a%20b", f"{path}/a%3Fb"]
    assert await complete(f"{path}/a ") == await complete(f"{path}/a%20") == [f"{path}/a%20b"]


async def test_only_paths_in_and_to_a_root_are_completed(root, outside, complete):
    path = root.as_uri().removeprefix("file:///")
    for typed in ("", path[:1], path[:-1]):
        assert await complete(typed) == [f"{path}/"]
    for typed in ("etc/pass", f"{path}/../root_evil/", f"{path}/none/", f"{path}/%zz/"):
        assert await complete(typed) == []


# Annotations


HINTS: dict[str, dict[str, object]] = {
    **{name: {"priority": 0.8} for name in ("README.md", "readme")},
    **{name: {"priority": 0.2} for name in (".gitignore", "node_modules", "uv.lock", "package-lock.json")},
    **{name: {"audience": ["user"]} for name in ("film.mp4", "all.zip")},
    **{name: {} for name in ("main.py", "lock")},
}


async def test_well_known_names_get_annotations_of_audience_and_priority(root, ask):
    for name in HINTS:
        (root / name).touch()
    allowed, *listed = (await ask("resources/list", {}))["result"]["resources"]
    assert (allowed["name"], allowed["title"]) == (str(root), root.name)
    for resource in listed:
        del resource["annotations"]["lastModified"]
    assert {resource["name"]: resource["annotations"] for resource in listed} == HINTS
    assert not any("title" in resource for resource in listed)


async def test_a_glob_subscription_over_the_quota_of_entries_is_refused(root):
    for name in "abc":
        (root / name).touch()
    async with app.open(Settings(roots=[root])) as running, talking(running) as peer:
        running.state.watcher._quota = EntryQuota(4)
        error = (await peer.request("resources/subscribe", {"uri": f"{root.as_uri()}/*"}))["error"]
    assert error["message"].startswith("too_many: ")
