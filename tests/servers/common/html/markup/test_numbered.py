"""Tables of code with line numbers."""

import pytest

from tests.servers.common.html.bodies import markdown

CODE = "```\nif a:\n    b()\n```"
NUMBERS = "<td><pre>7\n8\n</pre>"


@pytest.mark.parametrize(
    "table",
    [
        f"<tr>{NUMBERS}<td><pre>if a:\n    b()</pre>",
        f"<tr><th colspan=2><tr>{NUMBERS}<td><div><pre>if a:\n    b()</pre></div>",
        "<tr><td><div>1</div><div>2</div><td><div><code>if a:</code></div><div><code>&nbsp;   </code>"
        "<code>b()</code></div>",
        "<tr><td data-line-number=1><td>if a:<tr><td data-line-number=2><td>    b()",
        "<tr><td><b data-line-number=1>1</b><td><code>if a:</code><tr><td><b data-line-number=2>2</b><td>    b()",
        "<tr><td class=lineno>1<td>if a:\n<tr><td class=lineno>2<td>    b()\n",
    ],
)
def test_line_numbers_in_tables_of_code_are_omitted(table: str):
    assert markdown(f"<table>{table}</table>") == CODE


@pytest.mark.parametrize(
    "table",
    [
        "<tr><td>1<td><code>EPERM</code><tr><td>2<td><code>ENOENT</code>",
        "<tr><td data-line-number=1>Name<td>a<tr><td data-line-number=2>Size<td>b",
        "<tr><td>1 2<td>one two<tr><td>3 4<td>three four",
    ],
)
def test_numbers_that_are_not_line_numbers_are_kept(table: str):
    assert markdown(f"<table>{table}</table>").startswith("|  |  |\n| --- | --- |\n| ")


def test_numbers_beside_code_are_omitted_if_screen_readers_skip_them():
    code, numbers = "<pre>if a:\n    b()</pre>", "<b>1</b><br><b>2</b>"
    assert markdown(f"<div>{code}<div aria-hidden=true>{numbers}</div></div>") == CODE
    assert markdown(f"<div aria-hidden=true>{numbers}</div>{code}") == CODE
    assert markdown(f"{code}<div>{numbers}</div>") == f"{CODE}\n\n**1**  \n**2**"


@pytest.mark.parametrize(
    "line", ["<span style=display:flex><i>{0}</i>{1}\n</span>", "<div><i> {0}</i><b>{1}</b></div>"]
)
def test_a_number_at_the_beginning_of_each_line_is_omitted(line: str):
    lines = line.format(9, "if a:") + line.format(10, "    b()")
    assert markdown(f"<pre><code>{lines}</code></pre>") == CODE
    assert markdown(f"<pre>{lines.replace('10', '11')}</pre>").count("11") == 1


def test_the_number_of_a_single_line_is_omitted():
    assert markdown("<table><tr><td class=gutter><pre>1</pre><td><pre>a</pre></table>") == "```\na\n```"


def test_a_number_with_thousands_of_digits_is_kept():
    number = "9" * 5_000
    assert markdown(f"<table><tr><td>{number} 2<td><code>x</code></table>").startswith(number)


def test_numbers_that_are_not_consecutive_are_kept():
    assert markdown("<table><tr><td>1 5<td><pre>a</pre></table>") == "1 5\n\n```\na\n```"


def test_line_numbers_of_code_in_blocks_are_omitted():
    texts = ("if <a href=a>a</a>:", "    <a href=b>b</a>()")
    lines = "\n".join(
        f"<div class=line><a id=l{number}></a><span class=lineno>{number}</span>&#160;{text}</div>"
        for number, text in enumerate(texts, 9)
    )
    assert markdown(f"<div>{lines}</div>") == CODE


def test_a_code_fragment_without_line_numbers_is_code():
    assert markdown("<div class=fragment><div class=line>if a:</div><div class=line>    b()</div></div>") == CODE


def test_lines_of_a_poem_are_not_code():
    poem = "<div class=line-block><div class=line>The fox</div><div class=line>and the dog</div></div>"
    assert markdown(poem) == "The fox\n\nand the dog"
