"""The official client lists our resources and reads them."""

import base64
from pathlib import Path

import pytest
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError

from shared.protocol.types.resources import CONDITIONAL_READS, ETAG, NOT_MODIFIED

from .peers import Case


async def test_lists_resources(case: Case, file: Path) -> None:
    async with case.connect("filesystem") as client:
        listed = {resource.uri: resource for resource in (await client.list_resources()).resources}
    assert listed[file.as_uri()].name == file.name
    assert listed[file.as_uri()].mime_type == "text/plain"


async def test_lists_templates(case: Case) -> None:
    async with case.connect("filesystem") as client:
        (template,) = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "file:///{+path}{?offset,length}"


async def test_reads_a_file(case: Case, file: Path) -> None:
    async with case.connect("filesystem") as client:
        (contents,) = (await client.read_resource(file.as_uri())).contents
    assert (contents.uri, contents.mime_type, contents.text) == (file.as_uri(), "text/plain", "before\n")


async def test_reads_bytes(case: Case) -> None:
    async with case.connect("bench") as client:
        (contents,) = (await client.read_resource("bench://bytes")).contents
    assert base64.b64decode(contents.blob) == b"\x00\xff\x10"


async def test_reads_a_resource_of_a_template(case: Case) -> None:
    async with case.connect("bench") as client:
        (contents,) = (await client.read_resource("bench://city/Oslo")).contents
    assert contents.text == "the city of Oslo"


async def test_reads_again_only_what_has_changed(case: Case) -> None:
    """The client knows no etags, but it carries extensions and `_meta` both ways, in both eras."""
    async with case.connect("bench", extensions=[advertise(CONDITIONAL_READS)]) as client:
        first = await client.read_resource("bench://city/Oslo", cache_mode="bypass")
        etag = {ETAG: first.meta[ETAG]}
        again = await client.read_resource("bench://city/Oslo", meta=etag, cache_mode="bypass")
        other = await client.read_resource("bench://city/Bergen", meta=etag, cache_mode="bypass")
    assert (again.contents, again.meta[NOT_MODIFIED]) == ([], True)
    assert other.contents[0].text == "the city of Bergen"


async def test_missing_resource_is_an_error(case: Case, file: Path) -> None:
    uri = file.with_name("missing").as_uri()
    async with case.connect("filesystem") as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
    assert caught.value.code == (-32002 if case.handshake else -32602)
    assert caught.value.data == {"uri": uri}


async def test_uri_beyond_ascii(case: Case) -> None:
    """Over HTTP the client has to encode it for the header that names it."""
    async with case.connect("bench") as client:
        (contents,) = (await client.read_resource("bench://city/Tromsø")).contents
    assert contents.text == "the city of Tromsø"


async def test_long_list_comes_in_pages(case: Case) -> None:
    seen: list[str] = []
    async with case.connect("bench") as client:
        page = await client.list_resources()
        while page.next_cursor is not None:
            seen += [resource.uri for resource in page.resources]
            page = await client.list_resources(cursor=page.next_cursor)
        seen += [resource.uri for resource in page.resources]
    assert len(seen) == len(set(seen))
    assert {f"bench://page/{number}" for number in range(250)} <= set(seen)


async def test_forged_cursor_is_an_error(case: Case) -> None:
    async with case.connect("bench") as client:
        with pytest.raises(MCPError) as caught:
            await client.list_resources(cursor="forged")
    assert caught.value.code == -32602
