"""Search for prompts by words: matches and their order."""

from collections.abc import Mapping
from pathlib import Path

from servers.prompts.library.libraries import STARTER, Libraries
from servers.prompts.library.search import search
from tests.servers.prompts.folders import SIMPLE, front, write


def opened(*roots: Path) -> Libraries:
    found = Libraries(roots)
    found.scan()
    return found


def found(folder: Path, files: Mapping[str, str | bytes], query: str, most: int = 10) -> list[str]:
    """Returns the names of the matches."""
    write(folder, files)
    return [one.name for one in search(opened(folder), query, most).prompts]


def test_matches_are_ordered_by_the_field_of_the_word(tmp_path: Path) -> None:
    files = {
        "a.md": front(body="Review it."),
        "b.md": front("title: A preview"),
        "c.md": front("tags: [code, review]"),
        "code-review.md": SIMPLE,
        "review-code.md": SIMPLE,
        "review.md": SIMPLE,
        "x.md": SIMPLE,
    }
    expected = ["review", "review-code", "code-review", "c", "b", "a"]
    assert found(tmp_path, files, "review") == expected


def test_more_matching_words_rank_above_a_better_field(tmp_path: Path) -> None:
    files = {"security.md": SIMPLE, "x.md": front(body="Look at the security of the code.")}
    assert found(tmp_path, files, "security code") == ["x", "security"]


def test_titles_and_tags_match_in_any_yaml_style(tmp_path: Path) -> None:
    forms: list[tuple[str, ...]] = [
        ("title: About tides",),
        ("tags: [x, tides]",),
        ("tags:", "- x", "- tides"),
        ("tags:", "  - x", "  - tides"),
        ("title: >-", "  Something", "", "  about tides"),
    ]
    body = {"a.md": front(body="tides tides tides"), "b.md": front("arguments:", "  - name: tides")}
    files = {f"z{number}.md": front(*lines) for number, lines in enumerate(forms)}
    assert sorted(found(tmp_path, {**body, **files}, "tides")[:5]) == [f"z{number}" for number in range(5)]


def test_the_first_line_of_a_command_ranks_as_its_description(tmp_path: Path) -> None:
    files = {".claude/commands/b.md": "Fix it.\n\nNow.", ".claude/commands/a.md": "Do it.\n\nFix it."}
    assert found(tmp_path, files, "fix") == ["b", "a"]


def test_a_search_ignores_case(tmp_path: Path) -> None:
    files = {
        "a.md": front("title: Äpfel ZÄHLEN Éléphant"),
        "b.md": front("title: äpfel zählen éléphant"),
        "c.md": SIMPLE,
    }
    for query in ("ÄPFEL", "äpfel", "Äpfel", "zählen", "éléphant", "Éléphant"):
        assert found(tmp_path, files, query) == ["a", "b"], query


def test_a_search_without_words_returns_prompts_by_name_up_to_the_limit(tmp_path: Path) -> None:
    assert found(tmp_path, {f"{one}.md": SIMPLE for one in "edcba"}, " ") == ["a", "b", "c", "d", "e"]
    assert found(tmp_path, {}, "nothing") == []
    matches = search(opened(tmp_path), "something", 2)
    assert ([one.name for one in matches.prompts], matches.total) == (["a", "b"], 5)
    # A broken prompt does not count towards the limit.
    assert found(tmp_path, {"a.md": ""}, "something", 1) == ["b"]


def test_hostile_queries_have_answers() -> None:
    libraries = opened(STARTER)
    for query in ("(", "[a-z]*", "\\", "\ud800", "\0", "x" * 100_000, "a " * 10_000):
        assert search(libraries, query, 5).total <= 10


def test_only_the_first_library_is_searched_for_a_duplicate_name(tmp_path: Path) -> None:
    write(tmp_path, {"one/a.md": SIMPLE, "two/a.md": front("title: Tides")})
    libraries = opened(tmp_path / "one", tmp_path / "two")
    assert search(libraries, "tides", 5).prompts == []


def test_starter_prompts_are_found_by_their_purpose() -> None:
    libraries = opened(STARTER)
    expected = {
        "review my code": "review-code",
        "git commit": "commit-message",
        "write a unit test": "write-test",
        "sql": "sql-from-question",
        "stack trace": "explain-error",
        "changelog": "release-notes",
    }
    assert {query: search(libraries, query, 5).prompts[0].name for query in expected} == expected
