"""Insights, and the limits of their number and size."""

import pytest

from servers.common.sql.errors import SqlError
from servers.common.sql.insights import Insights, Memos
from servers.sqlite.server import app
from shared.protocol.identity import Principal
from tests.servers.peers import settings_of
from tests.shared.server.peer import talking


def test_an_empty_memo_names_append_insight() -> None:
    assert "append_insight" in Insights().memo()


def test_the_oldest_insights_are_dropped_over_the_count_limit() -> None:
    insights = Insights()
    gone = [insights.append(str(n)) for n in range(1_001)]
    assert (sum(gone), gone[-1], len(insights)) == (1, 1, 1_000)
    assert insights.memo().startswith("- 1\n")


def test_the_oldest_insights_are_dropped_over_the_size_limit() -> None:
    insights = Insights()
    for _ in range(30):
        insights.append("x" * 10_000)
    assert len(insights) == 20


def test_an_insight_over_the_size_limit_is_refused() -> None:
    with pytest.raises(SqlError) as raised:
        Insights().append("\N{ROBOT FACE}" * 5_001)
    assert raised.value.code == "too_large"


def test_each_principal_has_a_memo_and_the_least_recently_used_are_dropped() -> None:
    memos = Memos()
    memos.get_insights("ada").append("mine")
    memos.get_insights("bob").append("his")
    for n in range(99):
        assert memos.get_insights("ada").memo() == "- mine"
        assert len(memos.get_insights(f"other {n}")) == 0
    assert (len(memos.get_insights("bob")), len(memos.get_insights("ada"))) == (0, 1)


async def test_a_new_insight_notifies_its_owner_only() -> None:
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
