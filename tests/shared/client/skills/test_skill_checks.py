"""Checks of a skill: its entry, the bytes of its files, and the front matter of SKILL.md."""

import hashlib
from typing import Any

from shared.client.skills.skill_checks import (
    SkillRefused,
    check_entry,
    check_file,
    check_frontmatter,
    check_limits,
    is_inside,
)
from shared.protocol.types.skills import MAX_BYTES, MAX_FILES, SkillEntry, SkillResource

ROOT = "skill://team/review"
URI = f"{ROOT}/SKILL.md"
HEAD = {"name": "review", "description": "Reads changes."}


def file(uri: str, data: bytes = b"text", size: int | None = None) -> SkillResource:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return SkillResource(uri=uri, digest=digest, size=len(data) if size is None else size)


def entry(*uris: str, uri: str = URI, **head: Any) -> SkillEntry:
    return SkillEntry(uri=uri, frontmatter={**HEAD, **head}, resources=[file(one) for one in uris or (uri,)])


def refusal(check: Any, *given: Any) -> str | None:
    """The check that failed."""
    try:
        check(*given)
    except SkillRefused as refused:
        return refused.check
    return None


# Entries


def test_equivalent_uris_of_a_file_are_duplicates() -> None:
    for others in (("a.md", "%61.md"), ("a b.md", "a%20b.md"), ("\u00e9.md", "e\u0301.md")):
        assert refusal(check_entry, entry(URI, *(f"{ROOT}/{path}" for path in others))) == "entry", others


def test_files_in_the_directory_of_a_skill_are_accepted() -> None:
    inner = ("a.md", "refs/a b.md", "refs/a%20b.md", "nested/SKILL.md", "..a")
    assert not [path for path in inner if refusal(check_entry, entry(URI, f"{ROOT}/{path}"))]


def test_files_outside_the_directory_of_a_skill_are_refused() -> None:
    below = (f"{ROOT}-2/a.md", f"{ROOT}/../other/a.md", f"{ROOT}/%2e%2e/other/a.md", f"{ROOT}/..%5cother")
    elsewhere = ("file:///etc/passwd", "skill://team/other/a.md", *below, f"{ROOT}//a.md", ROOT)
    assert not [uri for uri in elsewhere if is_inside(ROOT, uri) or refusal(check_entry, entry(URI, uri)) != "entry"]


def test_the_uri_of_a_skill_must_contain_its_name() -> None:
    for uri in ("skill://SKILL.md", f"{ROOT}/README.md", "skill://team/other/SKILL.md", ROOT, "SKILL.md"):
        dynamic = SkillEntry(uri=uri, frontmatter=HEAD, resources="dynamic")
        assert [refusal(check_entry, one) for one in (entry(uri=uri), dynamic)] == ["entry", "entry"], uri


def test_an_entry_must_have_a_name_and_a_description() -> None:
    heads: tuple[dict[str, Any], ...] = ({"name": None}, {"description": None}, {"description": 1})
    assert [refusal(check_entry, entry(**head)) for head in heads] == ["entry"] * 3


def test_an_entry_must_list_its_manifest_and_each_file_once() -> None:
    assert refusal(check_entry, entry(f"{ROOT}/a.md")) == "entry"
    assert refusal(check_entry, entry(URI, URI)) == "entry"


def test_skills_up_to_the_required_limits_are_accepted() -> None:
    many = [file(f"{ROOT}/{number}.md", size=MAX_BYTES // MAX_FILES) for number in range(MAX_FILES)]
    full = SkillEntry(uri=URI, frontmatter=HEAD, resources=many)
    check_limits(full)
    more_files = full.model_copy(update={"resources": [*many, file(URI, size=0)]})
    assert refusal(check_limits, more_files) == "limits"
    more_bytes = full.model_copy(update={"resources": [*many[1:], file(URI, size=MAX_BYTES // MAX_FILES + 1)]})
    assert refusal(check_limits, more_bytes) == "limits"


def test_a_dynamic_skill_has_no_size() -> None:
    dynamic = SkillEntry(uri=URI, frontmatter=HEAD, resources="dynamic")
    check_entry(dynamic)
    check_limits(dynamic)


# Files


def test_a_file_must_have_its_listed_size_and_digest() -> None:
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


def test_yaml_front_matter_is_compared_as_json() -> None:
    for text in (WRITTEN, WRITTEN.replace("\n", "\r\n"), "\ufeff" + WRITTEN, WRITTEN.rstrip("\n")):
        check_frontmatter(entry(metadata=METADATA), text)


def test_any_different_value_in_the_front_matter_is_refused() -> None:
    changes: list[dict[str, Any]] = [{"version": 2}, {"version": "1.0"}, {"strict": 1}, {"tags": ["a"]}]
    changes += [{"tags": {"a": None}}, {"more": None}]
    others = [*({**METADATA, **change} for change in changes), {"version": 1}, None]
    heads = [entry(), entry(metadata=METADATA, license=None), *(entry(metadata=other) for other in others)]
    assert not [head.frontmatter for head in heads if refusal(check_frontmatter, head, WRITTEN) != "frontmatter"]


def test_missing_or_invalid_front_matter_is_refused() -> None:
    bodies = ("", "# Body", " ---\n---\n", "---\nname: review\n")
    bodies += ("---\n- a\n---\n", "---\na: [\n---\n", "---\na: !!x b\n---\n")
    assert not [text for text in bodies if refusal(check_frontmatter, entry(), text) != "frontmatter"]
