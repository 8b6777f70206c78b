"""The matcher for large files, compared with the matcher for any text."""

import pytest

from servers.filesystem.search import matcher
from servers.filesystem.search.matcher import Query, compile_query, matcher_for_large_file

TEXT = (
    "needle\nneed less needle, needless\n\nabc a.b ab abab\ndéjà-vu é\n12 needles\nx\nleedle dle dle dle\nlast needle"
)
LITERALS = ["needle", "dle", "e", "é", "éj", "à-vu", "a.b", "nothing", "12 needles\\nx"]
EXPRESSIONS = {
    "need[l]e": "need",
    r"\bneedle\b": "needle",
    r"\d+ needles?$": " needle",
    "^(a|needle)": "",
    "(need|a)less": "",
    "(n)eed+le": "eed",
    "x*needles*": "needle",
    "n{1}eedle": "",
    r"a\.b": "a.b",
    r"[\].x]b": "b",
    "[]x.]b [[:alpha:]^]": "b ",
    "[[:^digit:]]eedle": "eedle",
    r"\x61b": "",
    "(?i)NEEDLE": "",
    "é$|vu": "",
    "é.?j": "é",
    "needle.*needle": "needle",
}


@pytest.mark.parametrize("near", [0, 5])
@pytest.mark.parametrize(
    "query", [*(Query(text, literal=True) for text in LITERALS), *map(Query, EXPRESSIONS)], ids=lambda query: query[0]
)
def test_the_matcher_for_large_files_finds_every_match(
    query: Query, near: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matcher, "_NEAR_BYTES", near)
    monkeypatch.setattr(matcher, "_MAX_MISSES", 2)
    text = TEXT.encode()
    plain = compile_query(query)
    large = matcher_for_large_file(query, plain)
    lines = [number for number in range(len(text)) if not number or text[number - 1] == 10]
    for start in lines:
        for end in [*(number - 1 for number in lines if number > start), len(text)]:
            expected, match = plain.search(text, start, end), large.search(text, start, end)
            assert (match and match.span()) == (expected and expected.span())


@pytest.mark.parametrize(("pattern", "text"), EXPRESSIONS.items())
def test_the_text_required_by_a_pattern_is_found(pattern: str, text: str) -> None:
    assert matcher._required_text(Query(pattern)) == text
    assert matcher._required_text(Query(pattern, ignore_case=True)) == ""
