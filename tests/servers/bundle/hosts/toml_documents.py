"""Files of TOML as people and programs write them: any layout, comments, forms of keys, marks and line ends."""

import tomllib

from hypothesis import assume
from hypothesis import strategies as st

from tests.servers.bundle.hosts.documents import Document

COMMENTS = ["# c", "#", "# [mcp_servers.new]", "# ü = 1"]
VALUES = [
    *("1", "1.5", "true", '"x"', "'y'", "nan", "1979-05-27", '"""\n[mcp_servers.new]\n"""', "'''a\n'''", '"\\u00fc"'),
    *("[1, 2]", "[\n  1, # c\n]", "{ a = 1 }", '{ a = { b = "}" } }', "[]", "{}"),
]
KEYS = ["model", '"q r"', "a.b", "'x.y'", "a . c", "new"]
TABLES = [
    *("[a.d]", '["q"]', "[[list]]", "[ projects . '/work' ]", "[mcp_servers]", "[mcp_servers_]"),
    *("[mcp_servers.old]", "[mcp_servers.old.env]", '[mcp_servers."ne\\u0077er"]', "[list.sub]"),
]


@st.composite
def toml_documents(draw: st.DrawFn) -> Document:
    """Draws a document that may have servers, in tables of any order."""
    lines = draw(st.lists(st.one_of(line(), table()), max_size=4))
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n", "\n\n\n", " ", "\n  # c", "\n\t\n"]))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    # A newline within a text is part of its value.
    ends = draw(st.sampled_from(["\n", "\r\n"] if '"""' not in text and "'''" not in text else ["\n"]))
    return Document((mark + text.replace("\n", ends)).encode(), value)


def line() -> st.SearchStrategy[str]:
    pairs = st.builds("{}{}={}{}{}".format, st.sampled_from(KEYS), BLANKS, BLANKS, st.sampled_from(VALUES), ENDS)
    return st.one_of(pairs, st.sampled_from(["", *COMMENTS]))


def table() -> st.SearchStrategy[str]:
    return st.builds("{}{}\n{}".format, st.sampled_from(TABLES), ENDS, line())


BLANKS = st.sampled_from(["", " ", "\t"])
ENDS = st.sampled_from(["", "  ", " # why"])
