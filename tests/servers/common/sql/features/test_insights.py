"""Insights are kept up to a number and a size."""

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.insights import Insights, Memos
from servers.sqlite.server import app
from shared.protocol.identity import Principal
from tests.servers.peers import settings_of
from tests.shared.server.peer import talking


def test_without_insights_the_memo_says_how_to_add_some() -> None:
    assert "append_insight" in Insights().memo()


def test_the_oldest_go_when_there_are_too_many() -> None:
    insights = Insights()
    gone = [insights.append(str(n)) for n in range(1_001)]
    assert (sum(gone), gone[-1], len(insights)) == (1, 1, 1_000)
    assert insights.memo().startswith("- 1\n")


def test_the_oldest_go_when_they_are_too_large() -> None:
    insights = Insights()
    for _ in range(30):
        insights.append("x" * 10_000)
    assert len(insights) == 20


def test_one_insight_may_not_fill_the_memo() -> None:
    with pytest.raises(SqlError) as raised:
        Insights().append("\N{ROBOT FACE}" * 5_001)
    assert raised.value.code == "too_large"


def test_each_principal_has_a_memo_and_the_longest_unused_go() -> None:
    memos = Memos()
    memos.get_insights("ada").append("mine")
    memos.get_insights("bob").append("his")
    for n in range(99):
        assert memos.get_insights("ada").memo() == "- mine"
        assert len(memos.get_insights(f"other {n}")) == 0
    assert (len(memos.get_insights("bob")), len(memos.get_insights("ada"))) == (0, 1)


async def test_an_insight_is_told_to_its_owner_alone() -> None:
    async with (
        app.open(settings_of(app, "--demo")) as running,
        talking(running, principal=Principal("ada")) as ada,
        talking(running, principal=Principal("bob")) as bob,
    ):
        for peer in (ada, bob):
            await peer.request("resources/subscribe", {"uri": "memo://insights"})
        await ada.text("append_insight", insight="It sells.")
        assert (await ada.other("notifications/resources/updated"))["params"] == {"uri": "memo://insights"}
        await bob.request("ping")
        assert bob.others == []
