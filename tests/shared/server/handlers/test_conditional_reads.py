"""Conditional reads: the etag of every read, and "not modified" for clients that declared it."""

import pytest

from shared import TextResourceContents
from shared.protocol.types.resources import CONDITIONAL_READS, ETAG, NOT_MODIFIED
from shared.protocol.versions import VERSIONS
from tests.shared.server.peer import ERAS, server, talking

TAKES_IT = {"extensions": {CONDITIONAL_READS: {}}}
URI = "a:note"


def serving(*values):
    """A server whose resource has each of these values in turn, and then keeps the last one."""
    left = list(values)

    async def note() -> object:
        return left.pop(0) if len(left) > 1 else left[0]

    app = server()
    app.resource(URI)(note)
    return app


async def etags(*values):
    """The etags of reads that give these values."""
    async with talking(serving(*values)) as peer:
        answers = [await peer.request("resources/read", {"uri": URI}) for _ in values]
        return [answer["result"]["_meta"][ETAG] for answer in answers]


@pytest.mark.parametrize("version", ERAS)
async def test_only_changed_contents_are_sent_again(version):
    async with talking(serving("old", "old", "new"), version, TAKES_IT) as peer:
        etag = (await peer.request("resources/read", {"uri": URI}))["result"]["_meta"][ETAG]
        same, changed = [(await peer.request("resources/read", {"uri": URI}, **{ETAG: etag}))["result"] for _ in "ab"]
    assert same["contents"] == []
    assert same["_meta"] == same["_meta"] | {ETAG: etag, NOT_MODIFIED: True}
    assert changed["contents"] == [{"uri": URI, "text": "new"}]
    assert changed["_meta"][ETAG] != etag
    assert NOT_MODIFIED not in changed["_meta"]


@pytest.mark.parametrize("version", ERAS)
async def test_a_client_without_the_capability_always_gets_the_contents(version):
    for capabilities in ({}, {"extensions": {"org.example/other": {}}}, {"extensions": 1}):
        async with talking(serving("hello"), version, capabilities) as peer:
            etag = (await peer.request("resources/read", {"uri": URI}))["result"]["_meta"][ETAG]
            for held in (etag, 5):
                again = (await peer.request("resources/read", {"uri": URI}, **{ETAG: held}))["result"]
                assert again["contents"] == [{"uri": URI, "text": "hello"}]


async def test_equal_contents_have_the_same_etag_in_every_run():
    assert await etags("hello", "hello") == 2 * await etags("hello")


async def test_different_contents_have_different_etags():
    for one, other in (
        ("hello", "hello "),
        (b"hello", b"hello "),
        ("aGVsbG8=", b"hello"),
        ("hello", ["hello", "hello"]),
        ("hello", []),
        (["a", "bc"], ["ab", "c"]),
        (["a", "b"], 'a["a:note",null,"text"]b'),
        ("a", TextResourceContents(uri=URI, text="hello", meta={"etag": "a"})),
        ("hello", TextResourceContents(uri=URI, text="hello", mime_type="text/plain")),
        ("hello", TextResourceContents(uri="a:other", text="hello")),
    ):
        assert len(set(await etags(one, other))) == 2, (one, other)


async def test_metadata_does_not_change_the_etag():
    notes = [TextResourceContents(uri=URI, text="hello", meta={"loaded": at}) for at in (1, 2)]
    assert len(set(await etags(*notes))) == 1


async def test_an_etag_in_the_contents_is_used():
    def file(text, etag):
        return TextResourceContents(uri=URI, text=text, meta={"etag": etag})

    same, too, other = await etags(file("hello", "a"), file("goodbye", "a"), file("hello", "b"))
    assert same == too != other


async def test_an_etag_in_the_contents_must_be_a_string():
    for own in (1, None, ["a"]):
        contents = [TextResourceContents(uri=URI, text=text, meta={"etag": own}) for text in ("hello", "goodbye")]
        assert len(set(await etags(*contents))) == 2


async def test_a_lone_surrogate_has_an_etag():
    assert len(await etags("\ud800")) == 1


async def test_conditional_reads_are_declared_in_every_version():
    async with serving("hello").open() as running, server().open() as bare:
        for version in VERSIONS:
            assert running.identity.capabilities_for(version)["extensions"] == {CONDITIONAL_READS: {}}
            assert "extensions" not in bare.identity.capabilities_for(version)
