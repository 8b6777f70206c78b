"""Converts the data of a chart (DrawingML; ECMA-376, part 1, section 21.2) to an HTML table."""

from html import escape

from lxml.etree import _Element as Element

from .package import text_of

_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
MAX_POINTS = 500
"""Maximum number of rows in a chart's table."""
_LABELS, _VALUES = ("cat", "xVal"), ("val", "yVal")


def chart_html(root: Element) -> str:
    """Return the HTML of a chart: its title, and a table with a column per series and a row per category."""
    title = root.find(f"{_C}chart/{_C}title")
    title_text = "" if title is None else text_of(title)
    series = list(root.iter(f"{_C}ser"))
    labels: dict[int, str] = {}
    for element in series:
        labels = _points(element, _LABELS) | labels
    columns = [_points(element, _VALUES) for element in series]
    names = [next(map(text_of, element.iterfind(f"{_C}tx//{_C}v")), "") for element in series]
    all_indexes = sorted({index for column in columns for index in column})
    indexes = all_indexes[:MAX_POINTS]
    rows = [
        f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
        for tag, cells in (
            ("th", ["", *names]),
            *(("td", [labels.get(index, ""), *(column.get(index, "") for column in columns)]) for index in indexes),
        )
    ]
    caption = f"<p><em>Chart{': ' if title_text else ''}{escape(title_text)}</em></p>"
    if len(all_indexes) > MAX_POINTS:
        caption += f"<p><em>The first {MAX_POINTS:,} of its {len(all_indexes):,} rows</em></p>"
    return f"{caption}<table>{''.join(rows)}</table>" if indexes else caption


def _points(series: Element, names: tuple[str, ...]) -> dict[int, str]:
    """Return the values or labels of a series, by index. They are in the first child element with one of the
    `names`."""
    holder = next((element for name in names if (element := series.find(_C + name)) is not None), None)
    points = [] if holder is None else list(holder.iter(f"{_C}pt"))
    return {int(point.get("idx") or 0): text_of(point) for point in points}
