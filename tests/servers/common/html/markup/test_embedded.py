"""Frames, videos and files as links, and pictures in `noscript`."""

from tests.servers.common.html.bodies import markdown, plain, read_body


def test_embedded_pages_and_media_become_links_with_their_titles():
    for html, link in [
        ("<iframe src=https://e.org/a title='A b'></iframe>", "[A b](https://e.org/a)"),
        ("<iframe src=about:blank data-src=/a aria-label=A></iframe>", "[A](https://example.com/a)"),
        ("<iframe src=/a></iframe>", "[embedded page](https://example.com/a)"),
        ("<video src=/a.mp4 title=A>Too old.</video>", "[A](https://example.com/a.mp4)"),
        (
            "<video><source src=/a.webm><source src=/a.mp4><track src=t></video>",
            "[video](https://example.com/a.webm)",
        ),
        ("<audio src=/a.ogg></audio>", "[audio](https://example.com/a.ogg)"),
        (
            "<object data=/a.pdf><p>Plan of <a href=/a.pdf>A</a></p></object>",
            "[Plan of A](https://example.com/a.pdf)",
        ),
        ("<object><param name=movie value=/a.swf></object>", "[embedded file](https://example.com/a.swf)"),
        ("<embed src=/a.swf title=A>", "[A](https://example.com/a.swf)"),
        ("<iframe srcdoc='&lt;p hidden&gt;No&lt;/p&gt;In &lt;b&gt;it&lt;/b&gt;.'></iframe>", "In **it**."),
    ]:
        assert markdown(f"<p>one</p>{html}<p>two</p>") == f"one\n\n{link}\n\ntwo", html


def test_amp_elements_are_read_as_html_elements():
    picture = "<amp-img src=/a.webp alt=A><amp-img fallback src=/a.jpg alt=A></amp-img></amp-img>"
    frame = "<amp-iframe src=/b title=B><p placeholder>Wait</p></amp-iframe>"
    assert markdown(picture + frame) == "![A](https://example.com/a.webp)[B](https://example.com/b)"


def test_an_amp_element_without_end_tag_contains_no_following_block():
    for html, link in [
        ("<amp-img src=/a.webp alt=A><noscript><img src=/a.jpg></noscript>", "![A](https://example.com/a.webp)"),
        ("<amp-iframe src=/b title=B><p placeholder>Wait</p>", "[B](https://example.com/b)"),
        ("<amp-video title=C><source src=/c.mp4><div fallback>Too old.</div>", "[C](https://example.com/c.mp4)"),
    ]:
        assert markdown(f"<div>{html}<p>one</p></div><p>two</p>") == f"{link}\n\none\n\ntwo", html


def test_an_embedded_page_is_a_link_in_other_formats():
    html = "<p>x <iframe src=/a title=A></iframe></p>"
    assert read_body(html, format="links").text == "- [A](https://example.com/a)"
    assert '<a href="https://example.com/a">A</a>' in read_body(html, format="html").text
    assert plain(html) == "x A"


def test_embedded_elements_without_a_url_or_hidden_are_removed():
    for html in (
        "<iframe></iframe>",
        "<iframe src='javascript:alert(1)' title=A></iframe>",
        "<iframe src=/a width=1 height=1 title=A></iframe>",
        "<iframe src=/a style='width:0;height:0' title=A></iframe>",
        "<iframe src=/a title=A hidden></iframe>",
        "<video title=A></video>",
    ):
        assert markdown(f"<p>one</p>{html}") == "one", html


def test_an_object_without_a_file_shows_its_fallback():
    assert markdown("<object><p>one</p></object>two") == "one\n\ntwo"


def test_void_elements_contain_no_following_block():
    assert markdown("<embed src=/a title=A><p>one</p>two") == "[A](https://example.com/a)\n\none\n\ntwo"
    picture = "<picture><source srcset=a.webp><source srcset=b.webp><img src=/a.png alt=A></picture>"
    assert markdown(f"{picture}<p>one</p>") == "![A](https://example.com/a.png)\n\none"


def test_the_picture_in_a_noscript_replaces_the_placeholder():
    noscript = "<noscript><img src=/a.jpg alt=A></noscript>"
    picture = "![A](https://example.com/a.jpg)"
    captioned = '![A](https://example.com/a.jpg "C")'
    for html, text in [
        (noscript, picture),
        (f"<img src='data:image/gif;base64,R0'>{noscript}", picture),
        (f"<img data-src=/a.jpg alt=A>{noscript}", picture),
        (f"<figure><div>{noscript}</div><figcaption>C</figcaption></figure>", captioned),
        ("<noscript>no <img src=/a.jpg alt=A></noscript>x", "x"),
        ("<noscript><img src=/a.gif alt=A width=1></noscript>x", "x"),
    ]:
        assert markdown(html) == text, html
