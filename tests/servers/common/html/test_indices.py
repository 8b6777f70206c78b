"""Superscripts, subscripts, and raised words."""

import pytest

from tests.servers.common.html.bodies import markdown, plain


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("2<sup>n</sup>", "2^n"),
        ("e<sup>-x</sup>", "e^(-x)"),
        ("log<sub>2</sub>8", "log_2 8"),
        ("10<sup>6</sup>", "10^6"),
        ("10<sup>-9</sup> s", "10^-9 s"),
        ("x<sub>i</sub><sup>2</sup>", "x_i^2"),
        ("x<sub>i+1</sub>", "x_(i+1)"),
        ("x<sup>2n</sup>", "x^(2n)"),
        ("2<sup>2<sup>k</sup></sup>", "2^(2^k)"),
        ("(a+b)<sup>2</sup>", "(a+b)^2"),
        ("5 km<sup>2</sup>", "5 km^2"),
        ("<i>x</i><sup>2</sup><i>y</i>", "*x*^2 *y*"),
        ("<code>O(n<sup>2</sup>)</code>", "`O(n^2)`"),
        ("V<sub>max</sub>", "V_max"),
        ("P<sub>2</sub>", "P_2"),
        ("1<sup>st</sup>, 2<sup>nd</sup>, 3<sup>rd</sup>, n<sup>th</sup>", "1st, 2nd, 3rd, nth"),
        ("1<sup>er</sup>, 2<sup>e</sup>, XIX<sup>e</sup>, 1<sup>re</sup>", "1er, 2e, XIXe, 1re"),
        ("M<sup>me</sup>, M<sup>lle</sup>, D<sup>r</sup>, n<sup>o</sup> 4", "Mme, Mlle, Dr, no 4"),
        ("Stout<sup>TM</sup>, Ale<sup>®</sup>", "StoutTM, Ale®"),
        ("H<sub>2</sub>O, CO<sub>2</sub>, O<sub>2</sub>", "H2O, CO2, O2"),
        ("C<sub>6</sub>H<sub>12</sub>O<sub>6</sub>, Ca(OH)<sub>2</sub>", "C6H12O6, Ca(OH)2"),
        ("Ca<sup>2+</sup>, NH<sub>4</sub><sup>+</sup>", "Ca^(2+), NH4^+"),
        ("<sup>14</sup>C", "^14C"),
        ("Yield<sup>a</sup>", "Yield^a"),
        ("text<sup>see the notes</sup>", "textsee the notes"),
        ("<sub>Small print</sub>", "Small print"),
        ("x<sup> </sup>y", "x y"),
    ],
)
def test_superscripts_and_subscripts_are_marked_in_markdown(html: str, text: str) -> None:
    assert markdown(f"<p>{html}</p>") == text


def test_superscripts_and_subscripts_are_marked_in_plain_text() -> None:
    assert plain("<p>2<sup>n</sup> and log<sub>2</sub>8</p>") == "2^n and log_2 8"
