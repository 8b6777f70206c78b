"""Small files of Office, OpenDocument and EPUB, written part by part."""

from io import BytesIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_A = "http://schemas.openxmlformats.org/drawingml/2006"
WORD_NAMES = (
    f'xmlns:w="{_W}" xmlns:r="{_OFFICE}/relationships" xmlns:m="{_OFFICE}/math" xmlns:a="{_A}/main"'
    f' xmlns:wp="{_A}/wordprocessingDrawing" xmlns:pic="{_A}/picture" xmlns:c="{_A}/chart"'
)
SLIDE_NAMES = (
    f'xmlns:a="{_A}/main" xmlns:r="{_OFFICE}/relationships" xmlns:c="{_A}/chart"'
    ' xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
)
_NAMES = {name: name for name in ("office", "text", "table", "style", "presentation")}
_NAMES |= {"draw": "drawing", "svg": "svg-compatible", "fo": "xsl-fo-compatible"}
OPEN_NAMES = " ".join(
    [
        *(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{full}:1.0"' for name, full in _NAMES.items()),
        'xmlns:xlink="http://www.w3.org/1999/xlink"',
    ]
)


def archive(parts: dict[str, str | bytes], stored: str = "") -> bytes:
    """A zip archive of the parts; the part named `stored` comes first, uncompressed."""
    data = BytesIO()
    with ZipFile(data, "w", ZIP_DEFLATED) as written:
        for name, text in parts.items():
            written.writestr(name, text, ZIP_STORED if name == stored else ZIP_DEFLATED)
    return data.getvalue()


def relations(*entries: tuple[str, str, str], external: tuple[str, ...] = ()) -> str:
    """A relations part; each relation has an id, the last word of its type, and a target."""
    written = ""
    for name, kind, target in entries:
        mode = ' TargetMode="External"' if name in external else ""
        written += f'<Relationship Id="{name}" Type="{_OFFICE}/relationships/{kind}" Target="{target}"{mode}/>'
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{written}</Relationships>'


def word(body: str, **parts: str | bytes) -> bytes:
    """A Word document; `styles`, `numbering`, `footnotes`, `comments` are parts of it, `links` its relations."""
    names = [name for name in ("styles", "numbering", "footnotes", "comments") if name in parts]
    links = [(f"rId{name}", name, f"{name}.xml") for name in names]
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
            "_rels/.rels": relations(("rId1", "officeDocument", "word/document.xml")),
            "word/_rels/document.xml.rels": relations(
                ("link", "hyperlink", "https://example.org/"), *links, external=("link",)
            ),
            "word/document.xml": f"<w:document {WORD_NAMES}><w:body>{body}</w:body></w:document>",
            **{f"word/{name}.xml": parts[name] for name in names},
        }
    )


def slides(*shapes: str, **parts: str) -> bytes:
    """A presentation with a slide for each text; `notes1` and `chart1` belong to the first slide."""
    names = [f"slides/slide{number}.xml" for number in range(1, len(shapes) + 1)]
    entries = [(f"rId{number}", "slide", name) for number, name in enumerate(names, 1)]
    ids = "".join(f'<p:sldId id="{255 + number}" r:id="rId{number}"/>' for number in range(1, len(shapes) + 1))
    more = [("link", "hyperlink", "https://example.org/")]
    more += [("notes", "notesSlide", "../notesSlides/notes1.xml")] if "notes1" in parts else []
    more += [("chart", "chart", "../charts/chart1.xml")] if "chart1" in parts else []
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
            "_rels/.rels": relations(("rId1", "officeDocument", "ppt/presentation.xml")),
            "ppt/presentation.xml": f"<p:presentation {SLIDE_NAMES}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": relations(*entries),
            **{f"ppt/{name}": slide(text) for name, text in zip(names, shapes, strict=True)},
            "ppt/slides/_rels/slide1.xml.rels": relations(*more, external=("link",)),
            **({"ppt/notesSlides/notes1.xml": parts["notes1"]} if "notes1" in parts else {}),
            **({"ppt/charts/chart1.xml": parts["chart1"]} if "chart1" in parts else {}),
        }
    )


def slide(shapes: str) -> str:
    """A slide with these shapes; a whole slide is returned unchanged."""
    if shapes.startswith("<p:sld"):
        return shapes
    return f"<p:sld {SLIDE_NAMES}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"


def shape(paragraphs: str, kind: str | None = None) -> str:
    """A shape with paragraphs or one text; `kind` is the placeholder type."""
    holder = "" if kind is None else f'<p:nvPr><p:ph type="{kind}"/></p:nvPr>'
    text = paragraphs if paragraphs.startswith("<a:p>") else f"<a:p><a:r><a:t>{paragraphs}</a:t></a:r></a:p>"
    about = f'<p:nvSpPr><p:cNvPr id="1" name="x"/>{holder}</p:nvSpPr>'
    return f"<p:sp>{about}<p:txBody>{text}</p:txBody></p:sp>"


def opened(form: str, body: str, styles: str = "", **parts: str) -> bytes:
    """An OpenDocument file; `form` is text, spreadsheet or presentation."""
    content = (
        f"<office:document-content {OPEN_NAMES}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{form}>{body}</office:{form}></office:body></office:document-content>"
    )
    media_type = f"application/vnd.oasis.opendocument.{form}"
    manifest = {"META-INF/manifest.xml": "<manifest/>"}
    return archive({"mimetype": media_type, "content.xml": content, **manifest, **parts}, "mimetype")


def book(chapters: dict[str, str], metadata: str = "", **parts: str) -> bytes:
    """An EPUB book with its chapters in this order."""
    items = "".join(
        f'<item id="i{at}" href="{name}" media-type="application/xhtml+xml"/>' for at, name in enumerate(chapters)
    )
    spine = "".join(f'<itemref idref="i{at}"/>' for at in range(len(chapters)))
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
            "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"<metadata>{metadata}</metadata><manifest>{items}</manifest><spine>{spine}</spine></package>",
            **{
                f"OEBPS/{name}": f'<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><body>{text}</body></html>'
                for name, text in reversed(chapters.items())
            },
            **parts,
        },
        "mimetype",
    )
