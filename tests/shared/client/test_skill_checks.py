"""What is verified of a skill: its entry, the bytes of its files, and what SKILL.md says of itself."""

import hashlib
from typing import Any

import pytest

from shared.client.skill_checks import SkillRefused, check_entry, check_file, check_head, check_limits, inside
from shared.protocol.types.skills import MAX_BYTES, MAX_FILES, SkillEntry, SkillResource

ROOT = "skill://team/review"
URI = f"{ROOT}/SKILL.md"
HEAD = {"name": "review", "description": "Reads changes."}


def file(uri: str, data: bytes = b"text", size: int | None = None) -> SkillResource:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return SkillResource(uri=uri, digest=digest, size=len(data) if size is None else size)


def entry(*uris: str, uri: str = URI, **head: Any) -> SkillEntry:
    return SkillEntry(uri=uri, frontmatter={**HEAD, **head}, resources=[file(one) for one in uris or (uri,)])


def refusal(check: Any, *given: Any) -> str:
    with pytest.raises(SkillRefused) as refused:
        check(*given)
    return refused.value.check


# Entries


@pytest.mark.parametrize("others", [("a.md", "%61.md"), ("a b.md", "a%20b.md"), ("\u00e9.md", "e\u0301.md")])
def test_a_file_is_listed_once_however_it_is_written(others: tuple[str, str]) -> None:
    assert refusal(check_entry, entry(URI, *(f"{ROOT}/{path}" for path in others))) == "entry"


@pytest.mark.parametrize("path", ["a.md", "refs/a b.md", "refs/a%20b.md", "nested/SKILL.md", "..a"])
def test_files_stand_in_the_directory_of_the_skill(path: str) -> None:
    check_entry(entry(URI, f"{ROOT}/{path}"))


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "skill://team/other/a.md",
        f"{ROOT}-2/a.md",
        f"{ROOT}/../other/a.md",
        f"{ROOT}/%2e%2e/other/a.md",
        f"{ROOT}/..%5cother",
        f"{ROOT}//a.md",
        ROOT,
    ],
)
def test_a_file_elsewhere_is_none_of_the_skill(uri: str) -> None:
    assert not inside(ROOT, uri)
    assert refusal(check_entry, entry(URI, uri)) == "entry"


@pytest.mark.parametrize(
    "uri", ["skill://SKILL.md", f"{ROOT}/README.md", "skill://team/other/SKILL.md", ROOT, "SKILL.md"]
)
def test_a_skill_is_named_by_its_uri(uri: str) -> None:
    assert refusal(check_entry, entry(uri=uri)) == "entry"
    assert refusal(check_entry, SkillEntry(uri=uri, frontmatter=HEAD, resources="dynamic")) == "entry"


@pytest.mark.parametrize("head", [{"name": None}, {"description": None}, {"description": 1}])
def test_an_entry_says_what_it_is(head: dict[str, Any]) -> None:
    assert refusal(check_entry, entry(**head)) == "entry"


def test_an_entry_lists_its_manifest_and_each_file_once() -> None:
    assert refusal(check_entry, entry(f"{ROOT}/a.md")) == "entry"
    assert refusal(check_entry, entry(URI, URI)) == "entry"


def test_the_most_that_every_host_must_support_is_taken() -> None:
    many = [file(f"{ROOT}/{number}.md", size=MAX_BYTES // MAX_FILES) for number in range(MAX_FILES)]
    full = SkillEntry(uri=URI, frontmatter=HEAD, resources=many)
    check_limits(full)
    more_files = full.model_copy(update={"resources": [*many, file(URI, size=0)]})
    assert refusal(check_limits, more_files) == "limits"
    more_bytes = full.model_copy(update={"resources": [*many[1:], file(URI, size=MAX_BYTES // MAX_FILES + 1)]})
    assert refusal(check_limits, more_bytes) == "limits"


def test_what_lists_nothing_has_no_size() -> None:
    dynamic = SkillEntry(uri=URI, frontmatter=HEAD, resources="dynamic")
    check_entry(dynamic)
    check_limits(dynamic)


# Files


def test_a_file_is_what_was_listed() -> None:
    listed = file(URI, b"text")
    check_file(listed, b"text")
    assert refusal(check_file, listed, b"texts") == "size"
    assert refusal(check_file, listed, b"tex!") == "digest"


# Front matter

WRITTEN = """---
name: review
description: Reads changes.
metadata: {version: 1.0, tags: [a, null], strict: true, since: 2026-01-02}
---
# Body
"""
METADATA = {"version": 1, "tags": ["a", None], "strict": True, "since": "2026-01-02"}


@pytest.mark.parametrize("text", [WRITTEN, WRITTEN.replace("\n", "\r\n"), "\ufeff" + WRITTEN, WRITTEN.rstrip("\n")])
def test_front_matter_is_the_same_as_json(text: str) -> None:
    check_head(entry(metadata=METADATA), text)


@pytest.mark.parametrize(
    "metadata",
    [
        {**METADATA, "version": 2},
        {**METADATA, "version": "1.0"},
        {**METADATA, "strict": 1},
        {**METADATA, "tags": ["a"]},
        {**METADATA, "tags": {"a": None}},
        {**METADATA, "more": None},
        {"version": 1},
        None,
    ],
)
def test_another_value_anywhere_is_another_skill(metadata: Any) -> None:
    assert refusal(check_head, entry(metadata=metadata), WRITTEN) == "frontmatter"


def test_a_key_that_only_one_side_has_is_a_difference() -> None:
    assert refusal(check_head, entry(), WRITTEN) == "frontmatter"
    assert refusal(check_head, entry(metadata=METADATA, license=None), WRITTEN) == "frontmatter"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Body",
        " ---\n---\n",
        "---\nname: review\n",
        "---\n- a\n---\n",
        "---\na: [\n---\n",
        "---\na: !!x b\n---\n",
    ],
)
def test_without_front_matter_nothing_is_loaded(text: str) -> None:
    assert refusal(check_head, entry(), text) == "frontmatter"
