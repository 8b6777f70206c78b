"""Guesses the charset of a page that declares none, by its bytes, language and domain.

Browsers guess by the top-level domain, and some by the letters (https://encoding.spec.whatwg.org, chardetng). This
module does both. Charsets of the Latin script differ in a few letters, and each language uses only some of these. So
the text is decoded with each charset that sites in a language use, for each language. The best pair is the one in
which most non-ASCII characters are letters of the language in words, or signs between words. For other scripts,
charset-normalizer compares the charsets; if the language of the page is known, only those of the language.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from charset_normalizer import from_bytes

_SEARCHED_BYTES, _SAMPLE_BYTES = 500_000, 8_192
"""Number of bytes that are searched for non-ASCII text, and number of bytes of the sample that begins there."""
_TAGS = re.compile(rb"<(?:script|style)\b.*?(?:</(?:script|style)|\Z)|<[^>]*>?", re.DOTALL | re.IGNORECASE)
_NON_ASCII = re.compile(rb"[\x80-\xff]+")
_HTML_LANGUAGE = re.compile(rb"<html\b[^>]*?\s(?:xml:)?lang\s*=\s*[\"']?\s*([a-zA-Z]{2,3})\b", re.IGNORECASE)
_LATIN_RUN = 1.8
"""A text whose runs of non-ASCII bytes are shorter than this on average counts as Latin script."""
_MIN_SCORE = 0.5
"""Minimum average score of the sample's letters for a guess among Latin charsets to be accepted."""
_MIN_DECLARED_SCORE = 0.7
"""Minimum share of letters and common signs for a guess among the charsets of one language to be accepted."""
_MIN_KANA_SHARE = 0.3
"""Minimum share of kana in Japanese text. Other two-byte text decoded as Japanese has hardly any."""
_LANGUAGE_BONUS, _DOMAIN_BONUS = 0.3, 0.15
"""Added to the score if the page declares the language, or if its domain belongs to a country that speaks it."""
_CANDIDATE_CODECS = (
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
    *("iso8859_2", "iso8859_5", "iso8859_6", "iso8859_7", "koi8_r", "koi8_u", "cp866", "mac_cyrillic"),
    *("cp932", "euc_jp", "cp949", "big5", "gb18030"),
)
"""Charsets that are considered. The fewer there are, the more certain the choice."""
_WESTERN, _CENTRAL, _BALTIC = ("cp1252", "iso8859_15", "mac_roman"), ("cp1250", "iso8859_2"), ("cp1257",)
_CYRILLIC = ("cp1251", "koi8_r", "iso8859_5", "cp866", "mac_cyrillic")


class _Language(NamedTuple):
    """The charsets that sites in a language use, and its non-ASCII letters."""

    codecs: tuple[str, ...]
    letters: str


_LATIN = {
    "fr": _Language(_WESTERN, "àâæçéèêëîïôœùûüÿ"),
    "de": _Language(_WESTERN, "äöüß"),
    "es": _Language(_WESTERN, "áéíóúñü"),
    "pt": _Language(_WESTERN, "áâãàçéêíóôõúü"),
    "it": _Language(_WESTERN, "àèéìíîòóù"),
    "nl": _Language(_WESTERN, "éëïóöüèêç"),
    "sv": _Language(_WESTERN, "åäöé"),
    "da": _Language(_WESTERN, "æøåé"),
    "fi": _Language(_WESTERN, "äöåšž"),
    "ca": _Language(_WESTERN, "àçèéíïòóúü"),
    "pl": _Language(_CENTRAL, "ąćęłńóśźż"),
    "cs": _Language(_CENTRAL, "áčďéěíňóřšťúůýž"),
    "sk": _Language(_CENTRAL, "áäčďéíĺľňóôŕšťúýž"),
    "hu": _Language(_CENTRAL, "áéíóöőúüű"),
    "ro": _Language(_CENTRAL, "ăâîşţ"),
    "hr": _Language(_CENTRAL, "čćđšž"),
    "tr": _Language(("cp1254",), "çğıöşüi̇âîû"),
    "is": _Language(_WESTERN, "áðéíóúýþæö"),
    "lt": _Language(_BALTIC, "ąčęėįšųūž"),
    "lv": _Language(_BALTIC, "āčēģīķļņšūž"),
    "et": _Language((*_BALTIC, *_WESTERN), "äöõüšž"),
}
_OTHER_SCRIPTS = {
    **dict.fromkeys(("ru", "bg", "sr", "mk", "be"), _CYRILLIC),
    "uk": ("cp1251", "koi8_u", "iso8859_5", "cp866"),
    "el": ("cp1253", "iso8859_7"),
    **dict.fromkeys(("he", "iw", "yi"), ("cp1255",)),
    **dict.fromkeys(("ar", "fa", "ur"), ("cp1256", "iso8859_6")),
    "th": ("cp874",),
    "ja": ("cp932", "euc_jp"),
    "zh": ("gb18030", "big5"),
    "ko": ("cp949",),
    "vi": ("cp1258",),
}
_SAME_CHARSETS = {"no": "da", "nb": "da", "nn": "da", "sl": "hr", "bs": "hr", "gl": "pt", "az": "tr"}
_DOMAINS: dict[str, str] = dict(
    re.findall(
        r"(\w+):(\w+)",
        """
    fr:fr de:de es:es pt:pt it:it nl:nl fi:fi pl:pl sk:sk hu:hu ro:ro hr:hr tr:tr is:is lt:lt lv:lv ru:ru bg:bg mk:mk
    th:th at:de ch:de li:de be:nl br:pt mx:es ar:es cl:es co:es pe:es se:sv cz:cs dk:da no:da si:hr ba:hr ee:et cat:ca
    gr:el cy:el il:he ua:uk by:be su:ru kz:ru rs:sr jp:ja cn:zh tw:zh hk:zh kr:ko vn:vi ir:fa sa:ar eg:ar ae:ar
""",
    )
)
"""The language of each top-level domain whose pages are nearly all in one language."""
_SIGNS = frozenset("“”„‘’‚«»‹›–—…•€£§°©®™·¡¿\u00a0×½¼¾²³µ±ªº†")
_SIGNS_WITHIN_WORDS = frozenset("’·\u00a0")
_WORD_LETTERS = frozenset("àáéèêóòåöíüëæøúùâôîìõã")
"""Letters that are whole words in some language."""


def guess_codec(body: bytes, url: str) -> str | None:
    """Return the Python codec that is most likely right for a page; None if all bytes are ASCII.

    The sample begins at the first non-ASCII text outside tags.
    """
    words = _TAGS.sub(b" ", body[:_SEARCHED_BYTES])
    first_match = _NON_ASCII.search(words)
    if first_match is None:
        return None
    start = words.rfind(b"\n", max(first_match.start() - 1_024, 0), first_match.start()) + 1 or first_match.start()
    sample = words[start : start + _SAMPLE_BYTES]
    match = _HTML_LANGUAGE.search(body[:4_096])
    declared = match[1].decode("ascii").lower() if match else ""
    declared = _SAME_CHARSETS.get(declared, declared)
    expected = ""
    with suppress(ValueError):
        expected = _DOMAINS.get((urlsplit(url).hostname or "").rpartition(".")[2], "")
    runs = _NON_ASCII.findall(sample)
    is_latin = sum(map(len, runs)) < _LATIN_RUN * len(runs) or declared in _LATIN or expected in _LATIN
    if is_latin and declared not in _OTHER_SCRIPTS:
        score, codec = max(_score_latin_charsets(sample, declared, expected), key=lambda guess: guess[0])
        if score >= _MIN_SCORE:
            return codec
    for language in (declared, expected):
        likely = _choose_codec(sample, _OTHER_SCRIPTS.get(language, ()))
        if likely is not None and _is_plausible(sample.decode(likely, "replace")):
            return likely
    japanese = (codec for codec in ("cp932", "euc_jp") if _is_japanese(sample, codec))
    return next(japanese, None) or _choose_codec(sample, _CANDIDATE_CODECS)


def _score_latin_charsets(sample: bytes, declared: str, expected: str) -> Iterable[tuple[float, str]]:
    """Yield a score for each charset of each language, and the charset; the higher the score, the better it fits the
    sample. Common languages come first. `declared` is the language that the page declares, `expected` that of its
    domain."""
    texts: dict[str, str] = {}
    for language, (codecs, letters) in _LATIN.items():
        bonus = _LANGUAGE_BONUS * (language == declared) + _DOMAIN_BONUS * (language == expected)
        for codec in codecs:
            if codec not in texts:
                texts[codec] = sample.decode(codec, "replace")
            yield _score_letters(texts[codec], frozenset(letters)) + bonus, codec


def _score_letters(text: str, letters: frozenset[str]) -> float:
    """Return a score from -2 to 1: how well the non-ASCII characters fit the language on average."""
    total = count = 0.0
    for position, character in enumerate(text):
        if character < "\x80":
            continue
        count += 1
        before, after = text[position - 1 : position], text[position + 1 : position + 2]
        neighbours = before.isalpha(), after.isalpha()
        if character.isalpha() and character not in "ªº":
            if character.isupper() and before.islower():
                total -= 1
            elif character.lower() in letters:
                total += any(neighbours) or character in _WORD_LETTERS
            else:
                total -= 0.3
        elif character in _SIGNS:
            total += -1 if all(neighbours) and character not in _SIGNS_WITHIN_WORDS else 1
        else:
            total -= 2 if character == "\ufffd" else 1
    return total / count if count else 0.0


def _is_japanese(sample: bytes, codec: str) -> bool:
    """Return True if enough characters of the decoded sample are kana, as in Japanese."""
    non_ascii = [character for character in sample.decode(codec, "replace") if character >= "\x80"]
    syllables = sum("\u3041" <= character <= "\u30fc" for character in non_ascii)
    return syllables >= _MIN_KANA_SHARE * len(non_ascii) and non_ascii.count("\ufffd") <= 1


def _is_plausible(text: str) -> bool:
    """Return True if most non-ASCII characters in a text are letters or common signs."""
    non_ascii = [character for character in text if character >= "\x80"]
    plausible = sum(
        character.isalpha() or character in _SIGNS or (character > "\u0300" and character != "\ufffd")
        for character in non_ascii
    )
    return plausible >= _MIN_DECLARED_SCORE * len(non_ascii)


def _choose_codec(sample: bytes, codecs: tuple[str, ...]) -> str | None:
    """Return the codec with which a sample looks most like text; the Western one if it is as likely as others; None
    if there are no `codecs`, or none fits."""
    if not codecs:
        return None
    matches = from_bytes(sample, cp_isolation=list(codecs))
    best = matches.best()
    if best is None:
        return None
    equals = [match for match in matches if (match.chaos, match.coherence) == (best.chaos, best.coherence)]
    return "cp1252" if any("cp1252" in match.could_be_from_charset for match in equals) else best.encoding
