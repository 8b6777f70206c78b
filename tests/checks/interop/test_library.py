"""The official client and the prompt library: it lists, completes, renders, is asked, and hears of edits."""

from pathlib import Path

import pytest
from mcp.client.subscriptions import PromptsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import PromptListChangedNotification, PromptReference

from .peers import LIBRARY, STATELESS, Case, Heard

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

GREETING = """---
description: Greet somebody.
arguments: [{name: who, required: true}, {name: tone, enum: [warm, cool]}]
---
Say hello to {{ who }}.
"""


@pytest.fixture
def prompt(folder: Path, key: str) -> Path:
    """The file of a prompt that has the name of the key, and of which no other test knows."""
    return add_prompt(folder, key)


def add_prompt(folder: Path, name: str) -> Path:
    """Puts a prompt into the library, whole: servers complain of half a file."""
    draft = folder / f"{name}.draft"
    draft.write_text(GREETING)
    return draft.rename(folder / LIBRARY / f"{name}.md")


async def test_prompt_of_a_file(case: Case, prompt: Path) -> None:
    async with case.connect_alone("prompts") as client:
        listed = {one.name: one for one in (await client.list_prompts()).prompts}
        rendered = await client.get_prompt(prompt.stem, {"who": "{{ Ada }}"})
    assert [(one.name, one.required) for one in listed[prompt.stem].arguments] == [("who", True), ("tone", False)]
    assert rendered.messages[0].content.text.strip() == "Say hello to {{ Ada }}."


async def test_argument_is_completed(case: Case, prompt: Path) -> None:
    reference = PromptReference(type="ref/prompt", name=prompt.stem)
    async with case.connect_alone("prompts") as client:
        given = await client.complete(reference, {"name": "tone", "value": "w"})
    assert given.completion.values == ["warm"]


async def test_missing_argument(case: Case, prompt: Path) -> None:
    async with case.connect_alone("prompts") as client:
        with pytest.raises(MCPError, match="who") as caught:
            await client.get_prompt(prompt.stem)
    assert caught.value.code == -32602


@pytest.mark.parametrize("mode", ["legacy"])
async def test_new_prompt_is_told(case: Case, folder: Path, key: str) -> None:
    heard = Heard()
    async with case.connect_alone("prompts", message_handler=heard) as client:
        add_prompt(folder, key)
        await heard.first(PromptListChangedNotification)
        assert key in [one.name for one in (await client.list_prompts()).prompts]


@pytest.mark.parametrize("mode", ["auto", STATELESS])
async def test_new_prompt_is_listened_for(case: Case, folder: Path, key: str) -> None:
    async with case.connect_alone("prompts") as client, client.listen(prompts_list_changed=True) as stream:
        add_prompt(folder, key)
        assert await anext(stream) == PromptsListChanged()
        assert key in [one.name for one in (await client.list_prompts()).prompts]
