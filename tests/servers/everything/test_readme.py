"""The README says what the running server says."""

from pathlib import Path

import pytest

from tests.servers.everything.peer import STATELESS, bench

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "servers" / "everything" / "README.md").read_text()

pytestmark = pytest.mark.slow


def rows(heading: str) -> list[list[str]]:
    """The cells of all tables under a heading."""
    section = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


async def test_the_tools_are_all_there() -> None:
    async with bench() as peer:
        tools = await peer.listed("tools")
    assert rows("Tools") == [[f"`{tool['name']}`", tool["description"]] for tool in tools]


async def test_the_prompts_are_all_there() -> None:
    async with bench() as peer:
        prompts = await peer.listed("prompts")
    named = [", ".join(f"`{argument['name']}`" for argument in prompt.get("arguments", [])) for prompt in prompts]
    assert rows("Prompts") == [
        [f"`{prompt['name']}`", arguments, prompt["description"]]
        for prompt, arguments in zip(prompts, named, strict=True)
    ]


async def test_the_resources_are_all_there() -> None:
    async with bench() as peer:
        listed = [*await peer.listed("resources"), *await peer.listed("resourceTemplates")]
    named = [[one.get("uri") or one["uriTemplate"], one.get("mimeType", ""), one["description"]] for one in listed]
    assert rows("Resources") == [[f"`{uri}`", kind, description] for uri, kind, description in named]


async def test_the_skills_are_all_there() -> None:
    async with bench(STATELESS) as peer:
        skills = await peer.listed("skills")
    roots = [skill["uri"].removesuffix("SKILL.md") for skill in skills]
    files = [
        [one["uri"].removeprefix(root) for one in skill["resources"]]
        for skill, root in zip(skills, roots, strict=True)
    ]
    assert rows("Skills") == [
        [f"`{skill['frontmatter']['name']}`", ", ".join(f"`{file}`" for file in named)]
        for skill, named in zip(skills, files, strict=True)
    ]
