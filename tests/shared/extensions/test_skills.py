"""Skills: declarations, entries, reads that stay inside a skill, and the extension."""

import hashlib
from dataclasses import dataclass, field

import pytest

from shared import Context
from shared.errors import DeclarationError, ResourceNotFound
from shared.extensions.skills import MAX_DEPTH, Skill, SkillFile, Skills, skills
from shared.protocol.identity import Identity
from shared.protocol.methods import REQUESTS, method_table
from shared.protocol.types.base import Implementation
from shared.protocol.types.resources import CONDITIONAL_READS
from shared.protocol.versions import V2025_06_18, V2026_07_28
from tests.shared.server.peer import STATELESS, server, talking

HEAD = {"name": "review", "description": "Reads changes."}
MANIFEST = SkillFile.of(b"---\n")


def skill(path="review", head=None, **files):
    """A skill with these files; `__` in a name stands for a slash and `_` for a dot."""
    named = {name.replace("__", "/").replace("_", "."): SkillFile.of(data) for name, data in files.items()}
    return Skill(path, {**HEAD, "name": path.rpartition("/")[2], **(head or {})}, {"SKILL.md": MANIFEST, **named})


@dataclass
class Source:
    """Skills whose files all contain `text`, and the requests to the source."""

    skills: list[Skill]
    text: bytes | None = b"text"
    asked: list[str] = field(default_factory=list)

    async def list(self, context):
        return self.skills

    async def get(self, context, path):
        self.asked.append(path)
        return next((one for one in self.skills if one.path == path), None)

    async def read(self, context, skill, file):
        self.asked.append(f"{skill.path}: {file}")
        return self.text


# Declarations


def test_a_valid_path_ends_in_a_name():
    for path in ("a", "a1-b2", "team/review", "Team_1/a.b/review", "x" * 64, "a/" * 31 + "a"):
        assert skill(path).uri() == f"skill://{path}/SKILL.md"


NO_PATHS = ["", "/a", "a/", "a//b", "../a", "a/./b", "%2e/a", "a b/c", "a/" * 32 + "a"]
NO_NAMES = ["Review", "a--b", "-a", "a-", "a_b", "ä", "a\n", "x" * 65]


def test_an_invalid_path_is_refused():
    for path in (*NO_PATHS, *NO_NAMES, *(f"team/{name}" for name in NO_NAMES)):
        with pytest.raises(DeclarationError, match="not a path of a skill"):
            skill(path)


def test_front_matter_requires_a_description_and_the_name_of_the_path():
    heads = [({"description": text}, "needs a description") for text in ("", None, "x" * 1_025)]
    for head, message in [*heads, ({"name": "other"}, "another name")]:
        with pytest.raises(DeclarationError, match=message):
            Skill("review", {**HEAD, **head}, {"SKILL.md": MANIFEST})


def test_a_skill_requires_a_manifest_and_valid_paths_of_files():
    names = ["", "/a", "a/", "a//b", "..", "../a", "a/../b", "./a", "a\\b", "a\0b", "a\nb", "\ud800", "x" * 1_025]
    for name in names:
        with pytest.raises(DeclarationError, match="not a path of a file"):
            Skill("review", HEAD, {"SKILL.md": MANIFEST, name: MANIFEST})
    with pytest.raises(DeclarationError, match=r"no SKILL\.md"):
        Skill("review", HEAD, {"references/SKILL.md": MANIFEST})


@pytest.mark.parametrize(("count", "size"), [(512, 1), (1, 16 * 1024 * 1024 - 1)])
def test_a_skill_beyond_the_limits_of_hosts_is_refused(count, size):
    files = {"SKILL.md": SkillFile(1, "0" * 64)} | {f"{at}.md": SkillFile(size, "0" * 64) for at in range(count - 1)}
    files |= {"big": SkillFile(size, "0" * 64)} if count == 1 else {}
    assert Skill("review", HEAD, files)
    with pytest.raises(DeclarationError, match="more than 512 files or 16,777,216 bytes"):
        Skill("review", HEAD, {**files, "one more": SkillFile(1, "0" * 64)})


# Entries


def test_an_entry_has_the_digests_of_all_files_and_the_front_matter():
    head = {"license": None, "metadata": {"io": [1, None, {"a": True}]}}
    entry = skill(head=head, a__b_md=b"text").entry()
    digest = f"sha256:{hashlib.sha256(b'text').hexdigest()}"
    assert entry["frontmatter"] == {**HEAD, **head}
    assert entry["resources"][1] == {"uri": "skill://review/a/b.md", "digest": digest, "size": 4}


def test_a_file_has_exactly_one_uri():
    for name in ("a b.md", "ä.md", "100%.md", "a?b#c", "%2e%2e", "C:x", "日本/語.md"):
        one = Skill("review", HEAD, {"SKILL.md": MANIFEST, name: MANIFEST})
        assert one.uri(name).isascii()
        assert one.file_at(one.uri(name)) == name
    others = ("skill.md", "SKILL%2Emd", "SKILL.md/", "/SKILL.md", "a/../SKILL.md", "", "SKILL.md?")
    for uri in (*(f"skill://review/{rest}" for rest in others), "skill://other/SKILL.md"):
        assert skill().file_at(uri) is None


def test_the_file_extension_sets_the_mime_type():
    kinds = {"SKILL.md": "text/markdown", "a.PY": "text/x-python", "md": None, "a.b/c": None, "x.unheard-of": None}
    files = dict.fromkeys(kinds, MANIFEST)
    assert {name: Skill("review", HEAD, files).resource(name).mime_type for name in kinds} == kinds


def test_children_are_only_the_direct_children():
    one = skill(a_md=b"", refs__b_md=b"", refs__c_md=b"", refs__deep__d_md=b"")
    assert [child.name for child in one.children("skill://review")] == ["review", "a.md", "refs"]
    assert [child.name for child in one.children("skill://review/refs")] == ["b.md", "c.md", "deep"]
    assert one.children("skill://review/re") == one.children("skill://review/refs/") == []


# Requests to a source


async def test_a_source_gets_only_valid_paths():
    source = Source([skill()])
    places = ["skill://../etc/passwd", "skill://review/../../x", "skill:///etc", "file:///etc/passwd"]
    for uri in [*places, "review", "skill://Ä"]:
        with pytest.raises(ResourceNotFound):
            await Skills(source).children(None, uri)
        with pytest.raises(ResourceNotFound):
            await Skills(source).find(None, f"{uri}/SKILL.md")
    assert set(source.asked) <= {"review"}


async def test_the_lookup_of_a_long_uri_is_limited():
    source = Source([])
    with pytest.raises(ResourceNotFound):
        await Skills(source).read(None, "a/" * 100_000)
    assert len(source.asked) == MAX_DEPTH


async def test_a_source_reads_only_files_that_it_listed():
    source = Source([skill(a_md=b"")])
    for path in ["review/b.md", "review/../review/a.md", "review/%61.md", "review"]:
        with pytest.raises(ResourceNotFound):
            await Skills(source).read(None, path)
    assert "review: a.md" not in source.asked
    await Skills(source).read(None, "review/a.md")
    assert source.asked[-1] == "review: a.md"


async def test_a_skill_with_another_path_than_requested_is_not_found():
    class Lenient(Source):
        async def get(self, context, path):
            return self.skills[0]

    with pytest.raises(ResourceNotFound):
        await Skills(Lenient([skill("review")])).find(None, "skill://old/review/SKILL.md")


async def test_a_deleted_file_is_not_found():
    with pytest.raises(ResourceNotFound):
        await Skills(Source([skill()], text=None)).read(None, "review/SKILL.md")


async def test_a_nested_skill_precedes_the_outer_one():
    inner = skill("review/parts/style", SKILL_md=b"")
    outer = skill("review", parts__style__SKILL_md=b"", parts__other_md=b"")
    source = Source([outer, inner])
    await Skills(source).read(None, "review/parts/style/SKILL.md")
    assert source.asked[-1] == "review/parts/style: SKILL.md"
    await Skills(source).read(None, "review/parts/other.md")
    assert source.asked[-1] == "review: parts/other.md"


async def test_text_keeps_its_bytes_and_other_data_is_a_blob():
    for data in (b"", b"a\r\nb", "\ufeff\0ä".encode()):
        contents = await Skills(Source([skill()], text=data)).read(None, "review/SKILL.md")
        assert contents.text.encode() == data
    contents = await Skills(Source([skill()], text=b"\xff")).read(None, "review/SKILL.md")
    assert contents.to_wire()["blob"] == "/w=="


# Versions

METHODS = {"skills/list", "skills/get"}
DIRECTORY = "resources/directory/read"


def names(version, capabilities):
    identity = Identity(Implementation(name="a", version="1"), capabilities=capabilities)
    table = method_table(identity, (*REQUESTS, *skills(Source([])).methods))
    return {name for name, its_version in table if its_version is version}


def test_skills_methods_exist_only_in_the_stateless_era():
    rows = [({}, METHODS), ({"directoryRead": False}, METHODS), ({"directoryRead": True}, METHODS | {DIRECTORY})]
    for settings, known in [*rows, (None, set())]:
        declared = {} if settings is None else {"extensions": {"io.modelcontextprotocol/skills": settings}}
        assert names(V2026_07_28, declared) - names(V2026_07_28, {}) == known
        assert names(V2025_06_18, declared) == names(V2025_06_18, {})


def test_lists_and_single_skills_are_cacheable():
    assert {row.name for row in skills(Source([])).methods if row.cacheable} == METHODS


# Over a connection


async def test_skills_can_be_added_while_the_server_runs():
    source = Source([])
    app = server(extensions=[skills(source)])
    async with talking(app, STATELESS) as peer:
        assert (await peer.request("skills/list"))["result"]["skills"] == []
        source.skills.append(skill())
        assert len((await peer.request("skills/list"))["result"]["skills"]) == 1
        assert len((await peer.request("resources/list"))["result"]["resources"]) == 1
        source.skills.clear()
        answer = await peer.request("skills/get", {"uri": "skill://review/SKILL.md"})
        assert answer["error"]["data"] == {"uri": "skill://review/SKILL.md"}


async def test_a_source_gets_the_state_of_the_lifespan():
    class Opened(Source):
        async def list(self, context: Context):
            return context.state

    app = server(extensions=[skills(Opened([]))])

    @app.lifespan
    async def opened(_opening):
        yield [skill()]

    async with talking(app, STATELESS) as peer:
        assert len((await peer.request("skills/list"))["result"]["skills"]) == 1


async def test_the_extension_is_declared_with_others():
    app = server(capabilities={"extensions": {"org.example/own": {}}}, extensions=[skills(Source([]))])
    async with app.open() as running:
        declared = running.identity.capabilities
    assert declared["extensions"] == {
        "org.example/own": {},
        CONDITIONAL_READS: {},
        "io.modelcontextprotocol/skills": {"directoryRead": True},
    }
    assert "resources" in declared


async def test_a_declared_extension_without_a_source_has_no_methods():
    app = server(capabilities={"extensions": {"io.modelcontextprotocol/skills": {}}})
    async with talking(app, STATELESS) as peer:
        assert (await peer.request("skills/list"))["error"]["code"] == -32601


def test_a_second_source_is_refused():
    with pytest.raises(DeclarationError):
        server(extensions=[skills(Source([])), skills(Source([]))])
