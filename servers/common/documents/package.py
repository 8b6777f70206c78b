"""Reads the parts of a document in a zip archive: Office Open XML (ECMA-376, part 2), OpenDocument or EPUB.

The number and size of parts are limited. XML is parsed without its document type, so entities are not resolved and no
other file is loaded.
"""

import zlib
from io import BytesIO
from posixpath import dirname, join, normpath
from typing import NamedTuple
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from lxml import etree
from lxml.etree import _Element as Element

from .document import DocumentError, Facts

MAX_PARTS = 20_000
"""Maximum number of parts."""
MAX_BYTES = 200_000_000
"""Maximum uncompressed size of all parts in bytes, as the archive declares it; `zipfile` reads no more than that."""
_MAX_FACT_LENGTH = 1_000
"""Maximum length of a property in characters."""
_RELATIONSHIPS = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_PROPERTIES = {
    "title": "{http://purl.org/dc/elements/1.1/}title",
    "author": "{http://purl.org/dc/elements/1.1/}creator",
    "subject": "{http://purl.org/dc/elements/1.1/}subject",
    "language": "{http://purl.org/dc/elements/1.1/}language",
    "created": "{http://purl.org/dc/terms/}created",
    "modified": "{http://purl.org/dc/terms/}modified",
}


class Relation(NamedTuple):
    """A relationship of a part."""

    kind: str
    """The last segment of the URI of the relationship's type, such as `hyperlink`."""
    target: str
    """The name of another part, or a URL if the relationship is external."""
    external: bool


class Package:
    """A document as an archive. Its parts are read by name."""

    def __init__(self, body: bytes) -> None:
        """Open an archive. Raises DocumentError with code `unreadable` for a file that is no zip archive, or exceeds
        the limits."""
        try:
            self._archive = ZipFile(BytesIO(body))
        except (BadZipFile, ValueError, NotImplementedError):
            raise DocumentError("unreadable", "the file is damaged: its zip archive can't be read") from None
        entries = self._archive.infolist()
        if len(entries) > MAX_PARTS or sum(entry.file_size for entry in entries) > MAX_BYTES:
            reason = f"the file unpacks to more than {MAX_BYTES:,} bytes or {MAX_PARTS:,} parts"
            raise DocumentError("unreadable", reason)
        self.names = {entry.filename for entry in entries}

    def read(self, name: str) -> bytes:
        """Return a part. Raises DocumentError with code `unreadable` if it is missing, damaged or encrypted."""
        try:
            return self._archive.read(name)
        except KeyError:
            raise DocumentError("unreadable", "the file is damaged: part of it is missing") from None
        except RuntimeError:
            raise DocumentError("unreadable", "the file needs a password") from None
        except (BadZipFile, NotImplementedError, EOFError, OSError, ValueError, zlib.error):
            raise DocumentError("unreadable", "the file is damaged: part of it can't be unpacked") from None

    def xml(self, name: str) -> Element:
        """Return the root element of a part. Raises DocumentError with code `unreadable`, also if it is not XML."""
        return parse_xml(self.read(name))

    def relations(self, name: str) -> dict[str, Relation]:
        """Return the relationships of the part with this name, by id; "" is the name of the package itself."""
        folder = dirname(name)
        relations_part = join(folder, "_rels", f"{name.rpartition('/')[2]}.rels")
        if relations_part not in self.names:
            return {}
        relations: dict[str, Relation] = {}
        for entry in self.xml(relations_part).iter(_RELATIONSHIPS):
            target, external = entry.get("Target") or "", entry.get("TargetMode") == "External"
            if not external:
                target = normpath(join("/", folder, unquote(target))).lstrip("/")
            kind = (entry.get("Type") or "").rpartition("/")[2]
            relations[entry.get("Id") or ""] = Relation(kind, target, external)
        return relations

    def main_part(self) -> str:
        """Return the name of the main part of an Office Open XML document. Raises DocumentError `unreadable`."""
        for relation in self.relations("").values():
            if relation.kind == "officeDocument":
                return relation.target
        raise DocumentError("unreadable", "the file is damaged: it does not say which part is the document")

    def facts(self) -> Facts:
        """Return the properties of an Office Open XML document (ECMA-376, part 2, section 11)."""
        part = next(
            (relation.target for relation in self.relations("").values() if relation.kind == "core-properties"), None
        )
        return facts_of(self.xml(part)) if part in self.names else Facts()


def parse_xml(text: bytes) -> Element:
    """Return the root element of an XML document. Raises DocumentError with code `unreadable` for other text, and for
    deep nesting."""
    parser = etree.XMLParser(
        resolve_entities=False, load_dtd=False, no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        if error.code == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError from None
        is_too_deep = "depth" in str(error)
        reason = "the file is nested too deeply" if is_too_deep else "the file is damaged: part of it is not XML"
        raise DocumentError("unreadable", reason) from None


def facts_of(root: Element) -> Facts:
    """Return the properties of a document, given the element with its Dublin Core elements."""
    texts = {name: next(root.iter(tag), None) for name, tag in _PROPERTIES.items()}
    return Facts(
        **{name: text_of(element)[:_MAX_FACT_LENGTH] for name, element in texts.items() if element is not None}
    )


def text_of(element: Element) -> str:
    """Return all text in an element, on one line."""
    return " ".join("".join(map(str, element.itertext())).split())
