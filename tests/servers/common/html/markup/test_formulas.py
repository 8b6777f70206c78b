"""Formulas in MathML, TeX, scripts and images."""

import pytest

from servers.fetch.read.html.page import read_html
from servers.fetch.read.page import Format

WORDS = "<p>The quick brown fox jumps over the lazy dog, and the dog does not mind it at all.</p>" * 4
KATEX = (
    '<span class="katex"><span class="katex-mathml"><math><semantics><mrow><mi>x</mi></mrow>'
    '<annotation encoding="application/x-tex">x^2</annotation></semantics></math></span>'
    '<span class="katex-html" aria-hidden="true">x2</span></span>'
)
MATHJAX = (
    '<mjx-container><mjx-math aria-hidden="true">x2</mjx-math><mjx-assistive-mml>'
    "<math><msup><mi>x</mi><mn>2</mn></msup></math></mjx-assistive-mml></mjx-container>"
)
PICTURE = (
    '<span style="display: none"><math><annotation encoding="application/x-tex">x^2</annotation></math></span>'
    '<img class="mwe-math-fallback-image-inline" alt="x^2" src="x.svg">'
)


def read(html: str, format: Format = "markdown") -> str:
    page = f"<title>F</title><body><article>{WORDS}{html}{WORDS}</article>"
    return read_html(page, "https://example.com/", format, None).text


def test_an_inline_formula_appears_once_in_its_sentence() -> None:
    for formula in (
        "<math alttext='x^2'><msup><mi>x</mi><mn>2</mn></msup></math>",
        "<math><msup><mi>x</mi><mn>2</mn></msup></math>",
        KATEX,
        MATHJAX,
        PICTURE,
        "<script type='math/tex'>x^2</script>",
        "<span class=MathJax_Preview>x2</span><span class=MathJax>x2</span><script type='math/tex'>x^2</script>",
        "<img class=latex alt='x^2' src=x.png>",
        "<img src='https://latex.codecogs.com/svg.image?\\dpi{110}x%5E2'>",
        "<img src='https://render.githubusercontent.com/render/math?math=x%5E2'>",
    ):
        assert "Then $x^2$ grows." in read(f"<p>Then {formula} grows.</p>"), formula
        assert "Then x^2 grows." in read(f"<p>Then {formula} grows.</p>", "text"), formula


@pytest.mark.parametrize(
    ("drawing", "tex"),
    [
        ("<i>E</i><span class=mrel>=</span><i>m</i><i>c</i><span class=msupsub>{0}</span>", "E = mc^a"),
        ("<i>x</i><span class=msupsub>{1}</span>", "x_a"),
        ("<i>x</i><span class=msupsub>{2}</span>", "x_a^{bc}"),
        ("<span class=mfrac><span class=mopen></span>{3}</span>", r"\frac{bc}{a}"),
        ("(<span class=mfrac>{2}</span>)", r"({bc \atop a})"),
        ("<span class=sqrt>{0}</span>", r"\sqrt{a}"),
        ("<span class=sqrt><span class=root>3</span>{0}</span>", r"\sqrt[3]{a}"),
        ("<span class='mord accent'>{2}</span>", r"\overset{bc}{a}"),
        (
            "<span class=mtable><span class=col>{2}</span><span class=arraycolsep></span><span>{2}</span></span>",
            r"a & a \\ bc & bc",
        ),
        ("a<span class=mrel><span class=mrel>\ue020</span><span class=mrel>=</span></span>b", "a ≠ b"),
    ],
)
def test_a_drawing_by_katex_without_mathml_is_a_formula(drawing: str, tex: str) -> None:
    low = "<span class='vlist-t vlist-t2'><span class=vlist-r><span class=vlist><span>a</span>"
    stacks = [
        "<span class='vlist-t'><span class=vlist><span>a</span></span></span>",
        f"{low}</span><span>\u200b</span></span></span>",
        f"{low}<span>bc</span></span></span></span>",
        f"{low}<span><span class='frac-line mtight'></span></span><span>bc</span></span></span></span>",
    ]
    html = f"<span class=katex><span class=katex-html aria-hidden=true>{drawing.format(*stacks)}</span></span>"
    assert f"Then ${tex}$ grows." in read(f"<p>Then {html} grows.</p>")


def test_each_part_of_a_nested_drawing_is_written_once() -> None:
    part, depth = "x", 60  # with two times per level, longer than the universe has existed
    for _ in range(depth):
        part = f"<span class=mfrac><span class=vlist><span>{part}</span></span></span>"
    assert "$x$" in read(f"<p>The value <span class=katex><span class=katex-html>{part}</span></span>.</p>")


def test_a_display_formula_is_a_separate_paragraph() -> None:
    formulas = [
        "<math display=block><mi>y</mi><mo>=</mo><mi>x</mi></math>",
        "<script type='math/tex; mode=display'>y = x</script>",
        "<p><span class=math><math display=block><mi>y</mi><mo>=</mo><mi>x</mi></math></span></p>",
        "<table><tr><td></td><td><math><mi>y</mi><mo>=</mo><mi>x</mi></math></td><td>(1)</td></tr></table>",
    ]
    assert [formula for formula in formulas if "$y = x$" not in read(formula)] == []


def test_mathml_without_alternative_text_is_converted_by_structure() -> None:
    for mathml, tex in [
        ("<mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></mfrac>", r"\frac{a}{b + 1}"),
        ("<msub><mi>x</mi><mi>i</mi></msub>", "x_i"),
        ("<msubsup><mi>x</mi><mi>i</mi><mn>10</mn></msubsup>", "x_i^{10}"),
        ("<munderover><mo>∑</mo><mn>0</mn><mi>n</mi></munderover><mi>k</mi>", "∑_0^n k"),
        ("<msqrt><mi>p</mi></msqrt><mo>+</mo><mroot><mi>q</mi><mn>3</mn></mroot>", r"\sqrt{p} + \sqrt[3]{q}"),
        (
            "<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd><mn>3</mn></mtd></mtr></mtable>",
            r"1 & 2 \\ 3",
        ),
        ("<mi>f</mi><mfenced><mi>a</mi><mi>b</mi></mfenced>", "f (a, b)"),
        ("<mfenced open='[' separators=';'><mi>a</mi><mi>b</mi></mfenced>", "[a; b)"),
        ("<mi>cosh</mi><mfrac><mi>x</mi></mfrac>", "cosh x"),
        ("<semantics><mi>x</mi><annotation encoding=text/plain>no</annotation></semantics>", "x"),
    ]:
        assert f"Then ${tex}$ grows." in read(f"<p>Then <math>{mathml}</math> grows.</p>")


def test_a_hidden_formula_is_omitted() -> None:
    assert "secret" not in read("<p>Then <span style='display:none'><math><mi>secret</mi></math></span> grows.</p>")


def test_scripts_without_formulas_are_omitted() -> None:
    assert "let" not in read("<p>Then <script type='text/x-mathjax-config'>let x</script> it grows.</p>")


def test_tex_in_a_text_is_not_escaped() -> None:
    for tex in (
        "$$x*y*z$$",
        r"\(a_1 * b_{2}\)",
        r"\[\sum_i x_i * y_i\]",
        "$v_1 * v_2$",
        r"\begin{align*}a &= b * c\\ d &= e\end{align*}",
    ):
        assert f"Then {tex} grows." in read(f"<p>Then {tex.replace('&', '&amp;')} grows.</p>")


def test_text_that_only_looks_like_tex_is_escaped() -> None:
    for text, written in (
        ("It costs $5, *now* $6.", r"It costs $5, \*now\* $6."),
        ("$$[a](https://evil.example)$$", r"$$[a\](https://evil.example)$$"),
        ("$$`x`$$", r"$$\`x\`$$"),
        (r"\(never *closed*", r"\\(never \*closed\*"),
        ("$x_1", "$x_1"),
        ("US$10_000 and *more* US$20", r"US$10_000 and \*more\* US$20"),
    ):
        assert written in read(f"<p>{text}</p>"), text
