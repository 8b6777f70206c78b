"""Tables with cells outside rows, and with content outside cells."""

import pytest

from tests.servers.common.html.bodies import markdown

TABLE = "| A | B |\n| --- | --- |\n| 1 | 2 |"


@pytest.mark.parametrize(
    "rows",
    [
        "<thead><th>A<th>B</thead><tbody><tr><td>1<td>2</tbody>",
        "<th>A<th>B<tr><td>1<td>2",
        "<thead><tr><th>A<th>B</thead><tbody><td>1<td>2</tbody>",
        "<form><tr><th>A<th>B<tr><td>1<td>2</form>",
        "<form><div><thead><th>A<th>B</thead><tr><td>1<td>2</div></form>",
        "<tr><b><th>A</b><th>B<tr><td>1<td>2",
    ],
)
def test_cells_outside_rows_and_rows_in_other_elements_are_rows(rows: str) -> None:
    assert markdown(f"<table>{rows}</table>") == TABLE


@pytest.mark.parametrize("where", ["{0}<tr>", "<tr>{0}", "<tr><td>1<td>2</tr>{0}<tr>", "<tbody>{0}<tr>"])
def test_content_between_cells_is_before_the_table(where: str) -> None:
    start = where.removesuffix("<tr>")
    rows = "<tr><th>A<th>B</tr>"
    for content in ("Loose", "<p>Loose</p>", "<b>Lo</b>ose"):
        written = markdown(f"<table>{rows}{where.format(content)}<td>1<td>2</table>")
        assert written.replace("**", "").startswith("Loose\n\n| A | B |"), start


def test_content_of_an_inner_table_stays_in_its_cell() -> None:
    inner = "<table><tr><td>k<td>v<tr><td>l<td>w</table>"
    table = f"<table><tr><th>A<th>B<tr><td>1<td>{inner}</table>"
    assert markdown(table) == "| A | B |\n| --- | --- |\n| 1 | k: v<br>l: w |"
