from io import BytesIO
from zipfile import ZipFile

import pytest

from servers.common.documents import package
from servers.common.documents.document import DocumentError
from servers.common.documents.package import Package, Relation, parse_xml
from tests.servers.common.documents.archives import archive, relations

LAUGHS = "".join(f'<!ENTITY l{level} "{f"&l{level - 1};" * 10}">' for level in range(1, 10))


def test_relations_lead_to_parts_or_urls():
    rels = relations(("a", "slide", "../x/one.xml"), ("b", "hyperlink", "https://a/"), external=("b",))
    opened = Package(archive({"ppt/p.xml": "<p/>", "ppt/_rels/p.xml.rels": rels}))
    assert opened.relations("ppt/p.xml") == {
        "a": Relation("slide", "x/one.xml", False),
        "b": Relation("hyperlink", "https://a/", True),
    }
    assert opened.relations("x/one.xml") == {}


def test_a_relation_never_leads_out_of_the_archive():
    rels = relations(("a", "slide", "../../../../etc/passwd"))
    assert Package(archive({"_rels/.rels": rels})).relations("")["a"].target == "etc/passwd"


def test_more_parts_or_bytes_than_the_limits_are_refused(monkeypatch: pytest.MonkeyPatch):
    file = archive({"a": "x" * 100, "b": "y"})
    for limit, value in (("MAX_PARTS", 1), ("MAX_BYTES", 100)):
        with monkeypatch.context() as patch:
            patch.setattr(package, limit, value)
            with pytest.raises(DocumentError, match="unpacks to more than") as caught:
                Package(file)
        assert caught.value.code == "unreadable"


def test_entities_are_not_resolved():
    for declared in ('"lol"', 'SYSTEM "file:///etc/passwd"'):
        root = parse_xml(f"<!DOCTYPE a [<!ENTITY x {declared}>]><a>&x;</a>".encode())
        assert root.xpath("//text()") == []


def test_nested_entities_are_refused():
    with pytest.raises(DocumentError, match="part of it is not XML"):
        parse_xml(f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a>&l9;</a>'.encode())


def test_deep_nesting_is_refused():
    with pytest.raises(DocumentError, match="nested too deeply"):
        parse_xml(("<a>" * 100_000 + "</a>" * 100_000).encode())


def test_missing_and_damaged_parts_are_errors():
    file = archive({"a.xml": "<a>" + "x" * 1_000 + "</a>"})
    with pytest.raises(DocumentError, match="part of it is missing"):
        Package(file).read("b.xml")
    with ZipFile(BytesIO(file)) as opened:
        start = opened.getinfo("a.xml").header_offset + 40
    with pytest.raises(DocumentError, match="part of it can't be unpacked"):
        Package(file[:start] + b"\xff\xff" + file[start + 2 :]).read("a.xml")
    with pytest.raises(DocumentError, match="its zip archive can't be read"):
        Package(file[:-30])
