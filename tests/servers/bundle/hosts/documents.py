"""Configurations as people and programs write them: any layout, comments, trailing commas, marks and line ends."""

import json
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from hypothesis import strategies as st

from servers.bundle.hosts.clients import Client
from servers.bundle.hosts.json_edits import Receipt

BLANK = ["", " ", "  ", "\t", "\n", "\r\n", "\n  ", "\r\n\t"]
COMMENTS = [" // c\n", "\n// {\n  ", "/* , */", " /* a\n } */ ", "// ü\r\n"]


class Document(NamedTuple):
    """The bytes of a file, and their value; None if they have none."""

    text: bytes
    value: dict[str, Any] | None


scalars = st.one_of(st.none(), st.booleans(), st.integers(-9, 99), st.text(max_size=4))
keys = st.sampled_from(["a", "b", "ü", 'q"', "projects", "mcpServers "])
entries = st.fixed_dictionaries(
    {"command": st.sampled_from(["/x", "//", "/*"])}, optional={"args": st.just(["}", ","])}
)
servers = st.dictionaries(st.sampled_from(["old", "one", "été"]), entries, max_size=2)


@st.composite
def documents(draw: st.DrawFn, key: str, comments: bool) -> Document:
    """Draws a document that may have `key` at its top, and in places where it has no meaning."""
    gaps = st.sampled_from(BLANK + COMMENTS) if comments else st.sampled_from(BLANK)
    mark = draw(st.sampled_from(["", "\ufeff"]))
    if draw(st.integers(0, 9)) == 0:
        return Document((mark + draw(gaps) + draw(gaps)).encode(), None)
    nested = st.dictionaries(st.sampled_from(["/work", key]), st.one_of(scalars, st.just({key: {}})), max_size=2)
    value: dict[str, Any] = draw(
        st.dictionaries(keys, st.one_of(scalars, nested, st.lists(scalars, max_size=2)), max_size=3)
    )
    if draw(st.booleans()):
        items = list(value.items())
        items.insert(draw(st.integers(0, len(items))), (key, draw(servers)))
        value = dict(items)
    tidy = draw(st.sampled_from([None, None, 2, 4, "\t"]))
    body = _tidy(draw, value, tidy) if tidy and draw(st.booleans()) else _wild(draw, value, gaps, comments)
    return Document((mark + body).encode(), value)


def go_in_order(
    edits: ModuleType, client: Client, before: bytes, order: Sequence[str], read: Callable[[bytes], dict[str, Any]]
) -> None:
    """Puts three entries into a text, removes them in the given order, and checks that the text is as before."""
    text, receipts = before, dict[str, Receipt]()
    for name in sorted(order):
        edit = edits.insert_entry(text, client, name, {"command": name, "env": {"K": "V\n"}})
        text, receipts[name] = edit.text, edit.receipt
    left = read(text)
    for name in order:
        text, receipts = edits.remove_entry(text, client, name, receipts)
        del left[name]
        assert plain(read(text)) == plain(left)
    assert text == before


def plain(value: Any) -> str:
    """Returns a value as text, which also works for NaN and dates."""
    return json.dumps(value, default=repr, sort_keys=True)


def _tidy(draw: st.DrawFn, value: Any, indent: int | str) -> str:
    text = json.dumps(value, indent=indent, ensure_ascii=draw(st.booleans())) + draw(st.sampled_from(["", "\n"]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


def _wild(draw: st.DrawFn, value: Any, gaps: st.SearchStrategy[str], commas: bool) -> str:
    def parts(brackets: str, items: list[str]) -> str:
        text = ",".join(draw(gaps) + item + draw(gaps) for item in items)
        trailing = "," + draw(gaps) if items and commas and draw(st.booleans()) else ""
        return brackets[0] + (text or draw(gaps)) + trailing + brackets[1]

    def render(one: Any) -> str:
        if isinstance(one, dict):
            return parts(
                "{}", [f"{json.dumps(key)}{draw(gaps)}:{draw(gaps)}{render(item)}" for key, item in one.items()]
            )
        return parts("[]", [render(item) for item in one]) if isinstance(one, list) else json.dumps(one)

    return draw(gaps) + render(value) + draw(gaps)
