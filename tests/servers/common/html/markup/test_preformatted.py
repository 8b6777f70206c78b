"""Preformatted text without a `pre` element."""

import pytest

from tests.servers.common.html.bodies import markdown

CODE = "```\nif a:\n    b()\n```"


@pytest.mark.parametrize(
    "html",
    [
        "<p>x</p><code>\nif a:\n    b()\n\n</code><p>y</p>",
        "<p>x</p><div><code>if a:<br>&nbsp;&nbsp;&nbsp;&nbsp;b()</code></div><p>y</p>",
        "<p>x</p><div style='font: 1em monospace; white-space:pre'><div>if a:</div><div>    b()</div></div><p>y</p>",
        "<p>x</p><samp style='white-space:pre-wrap'>if a:\n    b()\n\n</samp><p>y</p>",
        "<p>x</p><code><span class=line>if a:</span>\n<span class=line>    b()</span></code><p>y</p>",
        "<p>x</p><xmp>if a:\n    b()</xmp><p>y</p>",
        "<p>x</p><textarea readonly>if a:\n    b()</textarea><p>y</p>",
    ],
)
def test_preformatted_text_is_a_block_of_code(html: str):
    assert markdown(html) == f"x\n\n{CODE}\n\ny"


def test_inline_code_is_not_a_block_of_code():
    for html in ("<p>Call <code>a\n\n\nb</code> now.", "<p><code>a\nb</code>", "<p><code>a</code><br><code>b</code>"):
        assert "```" not in markdown(html), html


def test_line_breaks_preserved_by_style_are_line_breaks():
    for style in ("pre-wrap", "pre-line", "break-spaces", "pre"):
        html = f"<div style='white-space: {style}'>First\nsecond <b>strong</b> and\nthird\n</div>"
        assert markdown(html) == "First  \nsecond **strong** and  \nthird", style


def test_empty_lines_preserved_by_style_separate_paragraphs():
    assert markdown("<span style='white-space:pre-line'>First\n\nSecond</span>") == "First\n\nSecond"


def test_a_style_without_line_breaks_changes_nothing():
    for style in ("nowrap", "normal"):
        assert markdown(f"<div style='white-space: {style}'>First\nsecond</div>") == "First second"


def test_a_style_in_a_pre_changes_nothing():
    assert markdown("<pre>a\n <span style='white-space: pre-wrap'>b\n  c</span></pre>") == "```\na\n b\n  c\n```"


def test_the_value_of_a_readonly_field_is_code():
    assert markdown("<p>Clone <input readonly value='git clone x'> now") == "Clone `git clone x` now"
    for kind in ("value=a", "readonly type=hidden value=a", "readonly type=checkbox value=a"):
        assert markdown(f"<p>Clone <input {kind}> now") == "Clone now", kind
