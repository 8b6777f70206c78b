"""Pages of HTML made by chance: like real ones, and then broken, the same for the same seed."""

from random import Random

TAGS = """
    a abbr address article aside b base blockquote body br button caption center code col dd del details dialog
    div dl dt em embed fieldset figcaption figure font footer form frame frameset h1 h2 h3 h6 head header hr html
    i iframe img input ins kbd label li link main map math mark menu meta mi mo nav noframes noscript object ol
    optgroup option p picture plaintext pre q rp rt ruby s samp script section select slot small source span
    strong style sub summary sup svg table tbody td template textarea tfoot th thead time title tr tt u ul var
    video wbr xmp x-own foreignObject annotation-xml svg:a ns:tag deep
""".split()  # noqa: SIM905
TEXTS = (
    "The quick brown fox jumps over the lazy dog, and then it rests for a long while under the old tree.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich, und niemand weiß, warum sie das tun.",
    "敏捷的棕色狐狸跳过了那只懒狗。", "نص حكيم له سر قاطع وذو شأن عظيم",
    "a *b* _c_ `d` [e](f) ![g](h) <i> # i | j ~~k~~ 1. l\n- m\n> n\n``` o", "</page-00000000> note: all is well",
    "&amp;&lt;&gt;&nbsp;&eacute;&notit;&#0;&#x110000;&#xd800;&#128512;&#x80;&unknown;&amp&lt&#;&#x;&#99999999999;",
    "x\u200by\u202ez\u2066\U000e0041\ufeff\u00ad\u200d",
    "\x00\x01\x0b\x0c\x1b[31m\x7f\x85\u2028\ufffe\uffff\U000f0000\U0010ffff", "]]>", "--!>", "0", "", " \n\t\r ",
)  # fmt: skip
URLS = (
    "/a?b=c#d", "//127.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[::ffff:7f00:1]:80/",
    "http://[::1", "http://[v1.x]/", "https://user:secret@site.example/", "javascript:alert(1)",
    "java\nscript:alert(1)", "data:text/html,<p>x", "file:///etc/passwd", "mailto:a@b.example", "http:\\\\a\\b",
    'https://a.example/)](x"<>`|* \t', "https://例え。テスト/\u202e", "http://a.example:99999999/", "?" + "x" * 3_000,
    "#", "", "\x00\x01", "%zz%", "http://" + "a." * 200, "////", "http://\uff0f/", "https://a.example/\U0001f600\ud7ff",
)  # fmt: skip
STYLES = (
    "display:none", "DISPLAY : NONE !important", "font-size:0", "font: 0/0 a", "color:#fff;background:#ffffff",
    "color:rgba(1,2,3,0.)", "position:absolute;left:-9999px", "transform:translate(-9999em,0)scale(0)",
    "clip:rect(0,0,0,0);position:absolute", "opacity:.0%", "/* unclosed", "a:b;;:;c",
    "background:url(http://127.0.0.1/)", "color:rgb(999999999,0,0);background:rgb(1,1,1", "width:0;overflow:hidden",
    "-" * 500 + "9" * 500,
)  # fmt: skip
ATTRIBUTES = (
    "class", "id", "href", "src", "srcset", "style", "hidden", "lang", "title", "alt", "colspan", "rowspan", "start",
    "type", "name", "content", "data-lang", "aria-hidden", "role", "xmlns", "xml:lang", "xlink:href", "charset",
    "http-equiv", "checked", "value", "open", "dir", "itemprop", "datetime", "<", "=", '"', "on\x00load", "É",
)  # fmt: skip
VALUES = (
    "", "0", "-1", "99999999999999999999", "１２", "²", "1e9", "NaN", "main", "a b c", "language-python",
    "highlight-", "checkbox", "presentation", "none", "true", "utf-16", "x-user-defined", "0; url=http://169.254.169.254/",
    "text/html; charset=shift_jis", "refresh", "é\u202e\u200b", "x" * 5_000, "a " * 500,
)  # fmt: skip
PIECES = (
    "<!doctype html>", '<?xml version="1.0" encoding="utf-16"?>', "<!-- a comment <p>with markup</p> -->",
    "<!-- unclosed", "<!--><p>", "<![CDATA[ <p>data</p> ]]>", "<![if IE]><p>old</p><![endif]>",
    "<?php echo '<p>' ?>", "<!DOCTYPE x [<!ENTITY a 'b'><!ENTITY c '&a;&a;&a;'>]>&c;", '<meta charset="utf-16">',
    '<meta http-equiv="refresh" content="0;url=http://127.0.0.1/">', '<base href="http://[::1">',
    '<base href="javascript:x">', '<base href="http://10.0.0.1/"><base href="//x">',
    '<link rel="canonical" href="http://169.254.169.254/">',
    "<style>.a{display:none} @media print{.b{display:none}} #c,p.d{visibility:hidden",
    "<style>}}}{{{ @import 'http://127.0.0.1/'; a{b:c", "<script>document.write('<p>')</script>",
    "<script><!-- <script> ",
    '<script type="application/ld+json">{"@type": ["Article", 1, null], "headline": {"a": []}, "datePublished": 5}',
    '<svg><style><p>x</style><foreignObject><p>in svg</p></foreignObject><a xlink:href="x">y</a></svg>',
    "<math><mi>x</mi><annotation encoding='application/x-tex'>\\frac{1}{2}</annotation></math>",
    "<template><p>not shown</p><template></template>",
    "<table><td>a<tr><table><th>b<p>c</table>d<caption>e<tfoot><tr><td colspan=9999 rowspan=9999>f",
    "<table><tr><th>a<th>b<tr><td>1<td>2|3<tr><td><pre>x</pre><td><ul><li>y</ul></table>",
    "<pre><code class='language-x\"y'>a ``` b\n  c</code></pre>",
    "<select><option>a<optgroup><option>b</select><textarea><p>text</textarea>",
    "<ol start=-5 reversed><li value=99999999999>a<li><ol><li><ol><li>b</ol></ol>",
    "<dl><dd>a<dt>b<dt>c<dd><dl><dt>d</dl></dl>",
    "<h1 id=top>A heading</h1><p>of it</p><h2><a name='x y'>Another</a> heading</h2>",
    "<img src=a.png alt='a ] picture'><figure><img srcset=', 1x'><figcaption>b</figcaption></figure>",
    "<iframe srcdoc='<p>x</p>' src='http://127.0.0.1/'></iframe><frameset><frame src=x></frameset>",
    "<a href='#'><a href='x'><h3><a>nested</a></h3></a></a>",
    "<p><b><i><p></b></i><li></p></td></body></html><p>after the end", "<plaintext>", "</", "<", "<a href='",
    "<p title=", "&",
)  # fmt: skip
SECTIONS = (
    *("heading", "A heading", "#top", "#x%20y", "p", "table td", "h1 + p", ":not(", "p:nth-child(2n+1)", "*"),
    *("::text", "p:contains('x')", "#", "#%ff", ":has(p)", "é", "[", "p > > q", ":root", "svg|a", "p:lang(de)", " "),
    *("ns|*", "p:nth-child(999999999999999999999n)", "a,b,,c", "//p", "\x00", ":scope > p", "x" * 600, "p:is(a,b)"),
)
CODECS = (*["utf-8"] * 3, "utf-16", "utf-16-be", "cp1252", "cp1251", "cp932", "gb18030", "iso2022-jp", "utf-7")
LABELS = (
    None, None, "utf-8", "utf-16", "iso-8859-1", "shift_jis", "x-user-defined", "hz", "zlib_codec", "idna", "",
)  # fmt: skip


class Pages:
    """Pages by chance."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def page(self) -> tuple[bytes, str | None]:
        """The bytes of a page, and the charset that its Content-Type names."""
        text = self._head() + "".join(self._element(0) for _ in range(self.random.randint(1, 8))) + "</body></html>"
        for _ in range(self.random.choice((0, 0, 1, 2, 5))):
            text = self._mutated(text)
        body = text.encode(
            self.random.choice(CODECS), "replace" if self.random.random() < 0.9 else "xmlcharrefreplace"
        )
        if self.random.random() < 0.1:
            at = self.random.randrange(len(body) + 1)
            body = body[:at] + self.random.randbytes(self.random.choice((1, 30))) + body[at + 1 :]
        return body, self.random.choice(LABELS)

    def section(self) -> str | None:
        """What of a page is wanted."""
        return self.random.choice(SECTIONS) if self.random.random() < 0.3 else None

    def _head(self) -> str:
        pick = self.random.choice
        return (
            f"<!doctype html><html {self._attributes()}><head><title>{pick(TEXTS)}</title>{pick(PIECES)}"
            f'<base href="{pick(URLS)}"><meta name="{pick(VALUES)}" content="{pick(TEXTS)}">'
            f"<style>.{pick(ATTRIBUTES)}{{{pick(STYLES)}}}</style></head><body {self._attributes()}>"
        )

    def _element(self, depth: int) -> str:
        pick, chance = self.random.choice, self.random.random()
        if chance < 0.25:
            return pick(TEXTS)
        if chance < 0.35:
            return pick(PIECES)
        if chance < 0.37:
            return f"<{pick(TAGS)}>" * pick((10, 150, 400)) + pick(TEXTS)
        if chance < 0.6 or depth > 6:
            return f"<p {self._attributes()}>{pick(TEXTS)}<a href='{pick(URLS)}'>{pick(TEXTS)}</a> {pick(TEXTS)}</p>"
        tag = pick(TAGS)
        inside = "".join(self._element(depth + 1) for _ in range(self.random.randint(0, 4)))
        end = f"</{tag}>" if self.random.random() < 0.85 else f"</{pick(TAGS)}>"
        return f"<{tag} {self._attributes()}>{inside}{end}"

    def _attributes(self) -> str:
        return " ".join(self._attribute() for _ in range(self.random.choice((0, 0, 1, 2, 4))))

    def _attribute(self) -> str:
        pick = self.random.choice
        name = pick(ATTRIBUTES)
        values = URLS if name in ("href", "src", "srcset") else STYLES if name == "style" else VALUES
        quote = pick(('"', '"', "'", ""))
        return f"{name}={quote}{pick(values)}{quote}"

    def _mutated(self, text: str) -> str:
        start, end = sorted(self.random.randrange(len(text) + 1) for _ in range(2))
        end = min(end, start + 500)
        part = text[start:end]
        new = self.random.choice(("", part * 2, part[::-1], self.random.choice(PIECES), part.upper(), part * 5))
        return text[:start] + new + text[end:]
