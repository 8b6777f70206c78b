"""Pages that are kept to go on with."""

from servers.fetch.pages.snapshots import Snapshot, Snapshots, Wanted
from servers.fetch.read.page import Loaded, Page


def snapshot(text: str, image: bytes = b"") -> Snapshot:
    loaded = Loaded("http://a/", (), 200, {}, "text/html", None, b"", 0, False, 0.0)
    return Snapshot(loaded, len(text), Page(text, "html", image=image))


A, B, C = Wanted("http://a/"), Wanted("http://b/"), Wanted("http://c/")


def test_what_was_put_last_is_there() -> None:
    kept = Snapshots()
    kept.put("me", A, snapshot("old"))
    kept.put("me", A, snapshot("new"))
    found = kept.get("me", A)
    assert found is not None
    assert found.page.text == "new"


def test_another_client_has_nothing_of_it() -> None:
    kept = Snapshots()
    kept.put("me", A, snapshot("mine"))
    assert kept.get("you", A) is None
    assert kept.recent("you") == []


def test_another_format_is_another_text() -> None:
    kept = Snapshots()
    kept.put(None, A, snapshot("as markdown"))
    assert kept.get(None, A._replace(format="text")) is None


def test_the_longest_unused_goes_first() -> None:
    kept = Snapshots(pages=2)
    kept.put(None, A, snapshot("a"))
    kept.put(None, B, snapshot("b"))
    kept.get(None, A)
    kept.put(None, C, snapshot("c"))
    assert [wanted for wanted, _ in kept.recent(None)] == [C, A]


def test_texts_and_images_are_bounded_together() -> None:
    kept = Snapshots(characters=10)
    kept.put(None, A, snapshot("12345"))
    kept.put(None, B, snapshot("1", b"12345"))
    assert [wanted for wanted, _ in kept.recent(None)] == [B]


def test_one_that_is_too_large_is_kept_alone() -> None:
    kept = Snapshots(characters=10)
    kept.put(None, A, snapshot("12345"))
    kept.put(None, B, snapshot("12345678901"))
    assert [wanted for wanted, _ in kept.recent(None)] == [B]
