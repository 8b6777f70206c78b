"""The printed features of a server: untrusted text of any shape."""

import pytest

from servers.bundle.terminal.offers import Offers, show_offers

TOOL = {"name": "a\n\x1b[2Jb", "inputSchema": {"properties": {"x\x1b[1m": {"enum": [[1], {}], "default": {"a": 1}}}}}
SHOWN = """\
x\\x1b[31m 5, speaks MCP 1

Capabilities
  tools

Tools
  7
    5
  a \\x1b[2Jb
    Argument  Value    What it is
    x\\x1b[1m  [1], {}  default {"a": 1}

Resources
  a: b
    two\N{REPLACEMENT CHARACTER}
    lines
"""


def test_texts_of_the_server_forge_no_line_or_escape_code(capsys: pytest.CaptureFixture[str]) -> None:
    resource = {"uri": "a:\nb", "description": "two\x07\nlines"}
    tools = [{"name": 7, "description": "5", "inputSchema": []}, TOOL]
    show_offers(Offers({"name": "x\x1b[31m", "version": 5}, "1", {"tools": 5}, None, tools, [resource], [], []))
    assert capsys.readouterr().out == SHOWN
