"""Undeclared charsets, detected by letters, language and domain."""

import pytest

from servers.fetch.read.text import decode

POLISH = "Młyn nad rzeką mełł jęczmień dla czterech wsi, aż rzeka zmieniła bieg. Właściciel był stary."
CZECH = "Mlýn u řeky byl postaven roku 1702 a mlel ječmen pro čtyři vesnice, než řeka změnila tok. Šel tam kůň."
HUNGARIAN = "A malom a folyó mellett épült, és négy falu árpáját őrölte, amíg a folyót el nem vezették."
FRENCH = "Le moulin fut bâti près de la rivière pour 40 € l'année ; le cœur de l'œuvre fut achevé dès l'été."
GERMAN = "Die Mühle wurde für 40 € im Jahr verpachtet. Der Müller hörte schöne Lieder über die Brücke."
TURKISH = "Değirmen ırmağın kıyısında kuruldu ve dört köyün arpasını öğüttü. Şehirde yağmur yağıyordu."
HEBREW = "הטחנה נבנתה על גדת הנהר וטחנה שעורה לארבעה כפרים. הטוחן היה איש זקן שאהב לספר סיפורים."
JAPANESE = "水車小屋は川のそばに建てられ、四つの村のために大麦をひいた。"
SPANISH = "El señor Núñez murió el año pasado, según dijo la niña. ¿Qué pasó después con el molino?"
SWEDISH = "Kvarnen byggdes vid ån och malde korn åt fyra byar. Mjölnaren var en gammal man på hösten."
RUSSIAN = "Мельница стояла у реки и молола ячмень для четырёх деревень, пока река не ушла в сторону."
GREEK = "Ο μύλος χτίστηκε δίπλα στο ποτάμι και άλεθε κριθάρι για τέσσερα χωριά."
ARABIC = "بنيت الطاحونة على ضفة النهر وطحنت الشعير لأربع قرى حتى تغير مجرى النهر."
LATVIAN = "Dzirnavas tika uzceltas upes krastā un mala miežus četriem ciemiem. Vīrs mīlēja stāstīt pasakas."


def read(text: str, codec: str, html: str = "<p>{}</p>", url: str = "") -> tuple[str, str]:
    return decode(html.format(text).encode(codec), None, "text/html", url)


@pytest.mark.parametrize(
    ("text", "codec", "name"),
    [
        (JAPANESE, "iso2022_jp", "iso-2022-jp"),
        (JAPANESE, "cp932", "shift_jis"),
        (JAPANESE, "euc_jp", "euc-jp"),
        (POLISH, "iso8859_2", "iso-8859-2"),
        (CZECH, "iso8859_2", "iso-8859-2"),
        (POLISH, "cp1250", "windows-1250"),
        (CZECH, "cp1250", "windows-1250"),
        (HUNGARIAN, "iso8859_2", "windows-1250"),  # the text has the same bytes in both
        (FRENCH, "iso8859_15", "iso-8859-15"),
        (GERMAN, "iso8859_15", "iso-8859-15"),
        (FRENCH, "cp1252", "windows-1252"),
        (SWEDISH, "cp1252", "windows-1252"),
        (TURKISH, "cp1254", "windows-1254"),
        (HEBREW, "cp1255", "windows-1255"),
        (FRENCH, "mac_roman", "macintosh"),
        (GERMAN, "mac_roman", "macintosh"),
        (SPANISH, "mac_roman", "macintosh"),
        (SWEDISH, "mac_roman", "macintosh"),
        (LATVIAN, "cp1257", "windows-1257"),
        (RUSSIAN, "koi8_r", "koi8-r"),
        (RUSSIAN, "cp1251", "windows-1251"),
        (GREEK, "cp1253", "windows-1253"),
        (ARABIC, "cp1256", "windows-1256"),
        (ARABIC, "iso8859_6", "iso-8859-6"),
    ],
)
def test_letters_determine_the_charset(text: str, codec: str, name: str) -> None:
    assert read(text, codec) == (f"<p>{text}</p>", name)


@pytest.mark.parametrize(
    ("text", "codec", "language", "domain"),
    [
        ("Bahçe kapısı", "cp1254", "tr", "tr"),
        ("Það er gott að búa þar", "cp1252", "is", "is"),
        ("Żółw", "iso8859_2", "pl", "pl"),
        ("страница не найдена", "cp1251", "ru", "ru"),
        ("שלום עולם", "cp1255", "he", "il"),
        ("水車小屋", "euc_jp", "ja", "jp"),
    ],
)
def test_language_or_domain_determines_the_charset_of_short_text(
    text: str, codec: str, language: str, domain: str
) -> None:
    html = f"<html lang='{language}-XX'><p>{{}}</p>"
    assert read(text, codec, html)[0] == html.format(text)
    assert read(text, codec, url=f"https://www.example.{domain}/a")[0] == f"<p>{text}</p>"


def test_english_with_typographic_signs_is_windows_1252() -> None:
    for text in ("“Don’t,” she said – it costs £5…", "a café in the fiancé’s town", "100 € or 5 ½ · ©"):
        assert read(text, "cp1252") == (f"<p>{text}</p>", "windows-1252")


def test_letters_override_a_wrong_language() -> None:
    assert read(RUSSIAN, "cp1251", "<html lang=en><p>{}</p>")[1] == "windows-1251"
    assert read(FRENCH, "cp1252", "<html lang=pl><p>{}</p>")[1] == "windows-1252"


def test_terminal_escapes_are_not_decoded_as_japanese() -> None:
    assert decode(b"a \x1b[1mbold\x1b[0m word", None, "text/plain") == ("a \x1b[1mbold\x1b[0m word", "utf-8")
