import pytest
from lxml import etree

from servers.common.documents.formulas import tex_of

M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'


def r(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


def part(name: str, text: str) -> str:
    return f"<m:{name}>{r(text)}</m:{name}>"


@pytest.mark.parametrize(
    ("omml", "tex"),
    [
        (f"<m:f>{part('num', '1')}{part('den', '2')}</m:f>", "\\frac{1}{2}"),
        (f"<m:sSubSup>{part('e', 'x')}{part('sub', 'i')}{part('sup', '10')}</m:sSubSup>", "x_i^{10}"),
        (f"<m:rad><m:deg/>{part('e', 'x')}</m:rad>", "\\sqrt{x}"),
        (f"<m:rad>{part('deg', '3')}{part('e', 'x')}</m:rad>", "\\sqrt[3]{x}"),
        (
            f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr>"
            f"{part('sub', 'i=1')}{part('sup', 'n')}{part('e', 'i')}</m:nary>",
            "\\sum_{i=1}^n i",
        ),
        (f"<m:d>{part('e', 'x')}{part('e', 'y')}</m:d>", "(x|y)"),
        (f'<m:d><m:dPr><m:begChr m:val="{{"/><m:endChr m:val=""/></m:dPr>{part("e", "x")}</m:d>', "\\{x"),
        (f"<m:func>{part('fName', 'sin')}{part('e', 'x')}</m:func>", "\\sin x"),
        (
            f"<m:m><m:mr>{part('e', 'a')}{part('e', 'b')}</m:mr><m:mr>{part('e', 'c')}{part('e', 'd')}</m:mr></m:m>",
            "\\begin{matrix}a & b \\\\ c & d\\end{matrix}",
        ),
        (f'<m:acc><m:accPr><m:chr m:val="&#x20d7;"/></m:accPr>{part("e", "v")}</m:acc>', "\\vec{v}"),
        (f"<m:box>{part('e', 'x')}</m:box>{r('+1')}", "x+1"),
    ],
)
def test_each_omml_structure_is_converted_to_tex(omml: str, tex: str):
    assert tex_of(etree.fromstring(f"<m:oMath {M}>{omml}</m:oMath>")) == tex
