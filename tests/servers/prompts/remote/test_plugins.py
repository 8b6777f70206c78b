"""Plugins of a marketplace."""

import json
from pathlib import Path

import pytest

from servers.prompts.errors import PromptError
from servers.prompts.remote.address import MARKETPLACE, Package
from servers.prompts.remote.cache import Checkout
from servers.prompts.remote.plugins import parse_marketplace
from tests.servers.prompts.folders import write
from tests.servers.prompts.remote.repositories import Repository, files, update
from tests.servers.prompts.serving import inside, names

SHA = "1" * 40
SOURCES: list[tuple[object, str]] = [
    ({"source": "github", "repo": "team/tools"}, "git+https://github.com/team/tools"),
    ({"source": "github", "repo": "team/tools", "ref": "v1", "sha": SHA}, f"git+https://github.com/team/tools@{SHA}"),
    ({"source": "url", "url": "https://example.org/a.git", "ref": "v1"}, "git+https://example.org/a.git@v1"),
    (
        {"source": "git-subdir", "url": "team/tools", "path": "./plugins/a"},
        "git+https://github.com/team/tools#subdirectory=plugins/a",
    ),
    ({"source": "npm", "package": "x"}, "its source is 'npm', and only git repositories are fetched"),
    ({"source": "url", "url": "file:///home/ada/secret"}, "its source uses file, not https"),
    ({"source": "url", "url": "git@example.org:a.git"}, "its source uses ssh, not https"),
    (
        {"source": "url", "url": "ext::sh -c id"},
        "its source can't be fetched: the address of a git library must have the form",
    ),
    (
        {"source": "url", "url": "https://u:p@example.org/a"},
        "its source can't be fetched: the address of a library contains a",
    ),
    ({"source": "git-subdir", "url": "team/tools", "path": "../up"}, "its source can't be fetched: '../up' is not a"),
    ({"source": "github", "repo": "team/tools", "ref": "--upload-pack=id"}, "its source can't be fetched: '--upload"),
    (["github"], "its source is 'None', and only git repositories are fetched"),
    ("./missing", "the marketplace has no folder './missing'"),
    ("../beside", "the marketplace has no folder '../beside'"),
]


def test_a_plugin_source_has_an_address_or_a_reason(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "beside").mkdir()
    for source, expected in SOURCES:
        data = json.dumps({"plugins": [{"name": "a", "source": source}]}).encode()
        (plugin,) = parse_marketplace(data, tmp_path / "lib", "https")
        assert (str(plugin.address) if plugin.address else plugin.reason).startswith(expected), source


def test_plugins_within_the_marketplace_need_no_address(tmp_path: Path) -> None:
    (tmp_path / "plugins/a").mkdir(parents=True)
    rows = [{"name": "a", "source": "./plugins/a"}, {"name": "b", "source": "a"}, {"name": "c", "source": "./"}]
    data = json.dumps({"metadata": {"pluginRoot": "./plugins"}, "plugins": rows}).encode()
    assert parse_marketplace(data, tmp_path, "https") == []


def test_invalid_and_duplicate_plugin_names_are_reported(tmp_path: Path) -> None:
    source = {"source": "github", "repo": "team/tools"}
    rows = [{"name": name, "source": source} for name in ("..", "a/b", "a", "A", 7)]
    plugins = parse_marketplace(json.dumps({"plugins": rows}).encode(), tmp_path, "https")
    assert [plugin.reason for plugin in plugins] == [
        "a plugin has a name that no folder can have: '..'",
        "a plugin has a name that no folder can have: 'a/b'",
        "",
        "another plugin has this name",
        "a plugin has a name that no folder can have: '7'",
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"plugins": 1}', '{"plugins": [], "metadata": 1}', "[" * 100_000])
def test_an_invalid_marketplace_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(PromptError, match="it is not a marketplace"):
        parse_marketplace(text.encode(), tmp_path, "https")


def make_marketplace(*sources: Path) -> str:
    return json.dumps(
        {"plugins": [{"name": path.name, "source": {"source": "url", "url": f"file://{path}"}} for path in sources]}
    )


@pytest.mark.slow
def test_plugins_in_other_repositories_are_part_of_the_library(tmp_path: Path) -> None:
    web, gone = Repository(tmp_path / "web", {"commands/fix.md": "Fix the web."}), tmp_path / "gone"
    market = Repository(
        tmp_path / "market", {"plugins/own/commands/fix.md": "Fix it.", MARKETPLACE: make_marketplace(web.root, gone)}
    )
    made = Checkout(market.address(), tmp_path / "cache")
    assert update(made)
    assert sorted(files(made)) == [MARKETPLACE, "git-plugins/web/commands/fix.md", "plugins/own/commands/fix.md"]
    assert [str(problem) for problem in made.problems()] == [
        f"{MARKETPLACE}: plugin 'gone': there is no such repository"
    ]
    assert not update(made)
    web.commit({"commands/fix.md": "Fix it again."})
    assert update(made)
    assert files(made)["git-plugins/web/commands/fix.md"] == "Fix it again."
    web.root.rename(tmp_path / "moved")
    assert not update(made)
    assert files(made)["git-plugins/web/commands/fix.md"] == "Fix it again."
    assert len(made.problems()) == 2
    market.commit({MARKETPLACE: make_marketplace()})
    assert update(made)
    assert sorted(files(made)) == [MARKETPLACE, "plugins/own/commands/fix.md"]
    assert not list(tmp_path.glob("cache/*/plugins/*"))


@pytest.mark.slow
def test_the_marketplace_of_a_plugin_is_ignored(tmp_path: Path) -> None:
    third = Repository(tmp_path / "third", {"commands/fix.md": "Fix it."})
    web = Repository(tmp_path / "web", {MARKETPLACE: make_marketplace(third.root)})
    market = Repository(tmp_path / "market", {MARKETPLACE: make_marketplace(web.root)})
    made = Checkout(market.address(), tmp_path / "cache")
    assert update(made)
    assert sorted(files(made)) == [MARKETPLACE, f"git-plugins/web/{MARKETPLACE}"]


@pytest.mark.slow
async def test_a_local_marketplace_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    web = Repository(tmp_path / "web", {"commands/fix.md": "Fix the web."})
    market = tmp_path / "market"
    write(market, {MARKETPLACE: make_marketplace(web.root), "plugins/own/commands/fix.md": "Fix it."})
    assert Package(market / MARKETPLACE).root == market
    async with inside(market / MARKETPLACE) as peer:
        assert await names(peer) == ["own-fix", "web-fix"]
