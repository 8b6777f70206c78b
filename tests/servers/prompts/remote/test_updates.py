"""A server with git libraries: its prompts, and notifications of changes."""

import json
from pathlib import Path

import pytest

from servers.prompts.format.skills import MAX_BYTES
from servers.prompts.remote.cache import Checkout
from servers.prompts.remote.updates import Updates
from tests.servers.prompts.remote.repositories import Repository, update
from tests.servers.prompts.serving import PROMPTS, Follower, got, inside, names
from tests.wire import STATELESS

pytestmark = pytest.mark.slow
OFTEN = ("--refresh-minutes", "0.003")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Repository(tmp_path / "team", {"hello.md": "Say hello.", "README.md": "No prompt."})


async def index(peer: object) -> dict[str, object]:
    answer = await peer.request("resources/read", uri="prompt://")  # type: ignore[attr-defined]
    found: dict[str, object] = json.loads(answer["result"]["contents"][0]["text"])
    return found


@pytest.mark.parametrize("era", ["2025-11-25", STATELESS])
async def test_a_library_is_served_with_its_commit(repository: Repository, era: str) -> None:
    async with inside("--library", f"git+file://{repository.root}", era=era) as peer:
        assert await names(peer) == ["hello"]
        assert (await got(peer, "hello"))[0]["content"]["text"] == "Say hello."
        (library,) = (await index(peer))["libraries"]  # type: ignore[misc, attr-defined]
    commit = repository.git("rev-parse", "HEAD")
    assert library == {"folder": "team", "prompts": 1, "from": "git+file:///.../team", "commit": commit}


async def test_a_new_commit_sends_list_changed(repository: Repository) -> None:
    async with inside("--library", f"git+file://{repository.root}", *OFTEN) as peer:
        assert await names(peer) == ["hello"]
        repository.commit({"bye.md": "Say goodbye."})
        assert PROMPTS in {await Follower(peer).next_event() for _ in range(2)}
        assert await names(peer) == ["bye", "hello"]


async def test_the_index_shows_the_commit_that_another_process_fetched(repository: Repository) -> None:
    address = f"git+file://{repository.root}"
    async with inside("--library", address, "--refresh-minutes", "0") as peer:
        assert await names(peer) == ["hello"]
        commit = repository.commit({"bye.md": "Say goodbye.", "big.md": "x" * (MAX_BYTES + 1)})
        update(Checkout(repository.address("")))
        assert PROMPTS in {await Follower(peer).next_event() for _ in range(2)}
        shown = await index(peer)
    assert (shown["libraries"][0]["commit"], [item["file"] for item in shown["problems"]]) == (commit, ["big.md"])  # type: ignore[index, attr-defined]


async def test_the_libraries_share_one_time_limit_at_the_start(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    async def update(_: Updates, __: Checkout, seconds: float) -> bool:
        given.append(seconds)
        return False

    monkeypatch.setattr(Updates, "_update", update)
    await Updates([Checkout(repository.address(name)) for name in ("", "/b")], 0).begin()
    assert 20 >= given[0] > given[1] > 0


async def test_only_a_new_commit_or_failure_starts_a_scan(repository: Repository) -> None:
    checkout, looks = Checkout(repository.address("")), 0

    async def scan() -> None:
        nonlocal looks
        looks += 1

    async def count_looks() -> int:
        before = looks
        await Updates([checkout], 0).run(scan)
        return looks - before

    first, same = await count_looks(), await count_looks()
    repository.commit({"bye.md": "Say goodbye."})
    newer = await count_looks()
    repository.root.rename(repository.root.with_name("gone"))
    assert (first, same, newer, await count_looks(), await count_looks()) == (1, 0, 1, 1, 0)


async def test_a_server_starts_from_the_cache_without_the_repository(repository: Repository) -> None:
    library = "--library", f"git+file://{repository.root}"
    async with inside(*library) as peer:
        assert await names(peer) == ["hello"]
    repository.root.rename(repository.root.with_name("gone"))
    async with inside(*library) as peer:
        assert await names(peer) == ["hello"]


async def test_a_server_starts_without_a_missing_library_and_reports_it(
    tmp_path: Path, repository: Repository
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.md").write_text("Say it.")
    async with inside(str(tmp_path / "own"), "--library", f"git+file://{repository.root}@nowhere") as peer:
        assert await names(peer) == ["mine"]
        (problem,) = (await index(peer))["problems"]  # type: ignore[misc, attr-defined]
        refused = (await peer.request("prompts/get", name="hello"))["error"]["message"]
        listed = await peer.text("search_prompts")
    assert problem["reason"] == (
        "git+file:///.../team@nowhere: the repository has no branch or tag 'nowhere'; nothing has been fetched yet"
    )
    assert refused == f"not_found: there is no prompt 'hello'. {problem['reason']}."
    assert f"\nteam: {problem['reason']}\n" in listed
    assert str(tmp_path) not in json.dumps(problem)
