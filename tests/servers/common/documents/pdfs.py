"""Small PDFs with a few words."""

from collections.abc import Sequence
from io import BytesIO

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject


def written(pages: Sequence[str], password: str | None = None) -> bytes:
    writer = PdfWriter()
    for text in pages:
        page = writer.add_blank_page(200, 200)
        font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
        named = DictionaryObject({NameObject(key): NameObject(value) for key, value in font.items()})
        fonts = DictionaryObject({NameObject("/F1"): named})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 10 100 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(content)
    writer.add_metadata({"/Title": "A report", "/Author": "Ann", "/CreationDate": "D:20210906000100+02'00'"})
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(data := BytesIO())
    return data.getvalue()
