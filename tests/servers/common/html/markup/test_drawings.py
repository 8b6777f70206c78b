"""Text of SVG drawings, and links of image maps."""

from tests.servers.common.html.bodies import markdown, read_body

DEN = (
    "<svg><title>A den</title><defs><text>No</text></defs><g><text>Way <tspan>in</tspan></text></g><text>Room</text>"
)


def test_the_text_of_an_svg_follows_its_title() -> None:
    for html, text in [
        (f"<p>See {DEN}</svg> now.</p>", "See A den: Way in, Room now."),
        ("<p>See <svg><foreignObject><div>Start</div></foreignObject></svg> now.</p>", "See Start now."),
        ("<p>See <svg><title>Search</title><path d=M0/></svg> now.</p>", "See now."),
        ("<p>See <svg style='display:none'><text>No</text></svg> now.</p>", "See now."),
    ]:
        assert markdown(html) == text


def test_areas_of_an_image_map_are_links() -> None:
    html = "<p>A plan <map name=m><area href=/n alt=North><area href=/s title=South><area alt=None></map></p>"
    assert markdown(html) == "A plan [North](https://example.com/n) [South](https://example.com/s)"
    assert read_body(html, format="links").text.count("- [") == 2
