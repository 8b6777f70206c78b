"""Delivery of changes: subscriptions of the handshake era, and streams of the stateless era."""

from shared.protocol.session.events import Change
from shared.protocol.session.subscriptions import Listen, Subscriptions
from shared.protocol.wire.jsonrpc import Notification

ID = "io.modelcontextprotocol/subscriptionId"
TOOLS = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"


def notifications(subscriptions, change, *, handshake_open=False):
    return list(subscriptions.notifications_for(change, handshake_open=handshake_open))


def subscribed(**uris):
    subscriptions = Subscriptions()
    for uri, key in uris.items():
        subscriptions.subscribe(uri, key)
    return subscriptions


def test_list_changes_are_sent_only_to_open_sessions():
    assert notifications(Subscriptions(), Change("tools"), handshake_open=True) == [(Notification(TOOLS), None)]
    assert notifications(Subscriptions(), Change("tools")) == []


def test_updates_are_matched_by_key_and_sent_with_each_subscribed_uri():
    subscriptions = subscribed(Mixed="key", other="else")
    assert notifications(subscriptions, Change("resource", "key")) == [
        (Notification(UPDATED, {"uri": "Mixed"}), None)
    ]
    subscriptions = subscribed(a="key", A="key")
    assert [message.params["uri"] for message, _ in notifications(subscriptions, Change("resource", "key"))] == [
        "a",
        "A",
    ]


def test_subscribing_again_replaces_and_returns_the_old_key():
    subscriptions = subscribed(a="old")
    assert subscriptions.subscribe("a", "new") == ["old"]
    assert dict(subscriptions.subscribed) == {"a": "new"}


def test_unsubscribing_returns_the_key_once():
    subscriptions = subscribed(a="key")
    assert (subscriptions.unsubscribe("a"), subscriptions.unsubscribe("a")) == (["key"], [])


def test_unsubscribing_cancels_a_subscription_under_way():
    subscriptions = Subscriptions()
    with subscriptions.begin_subscription("a") as still_wanted:
        assert still_wanted()
        subscriptions.unsubscribe("a")
        assert not still_wanted()


def test_a_later_subscription_replaces_an_earlier_subscription_under_way():
    subscriptions = Subscriptions()
    with subscriptions.begin_subscription("a") as first:
        with subscriptions.begin_subscription("a") as second:
            assert (first(), second()) == (False, True)
        assert not first()


def test_open_streams_get_only_the_changes_they_listen_to():
    subscriptions = Subscriptions()
    subscriptions.listen(Listen(1, frozenset({"tools"})))
    assert notifications(subscriptions, Change("prompts")) == []
    assert notifications(subscriptions, Change("tools")) == [(Notification(TOOLS, {"_meta": {ID: 1}}), 1)]
    assert subscriptions.close(1) is not None
    assert subscriptions.close(1) is None
    assert notifications(subscriptions, Change("tools")) == []


def test_each_stream_gets_a_change_with_its_own_id():
    subscriptions = Subscriptions()
    for id_ in ("1", 1, 0, ""):
        subscriptions.listen(Listen(id_, frozenset({"tools"})))
    marks = [(message.params["_meta"][ID], about) for message, about in notifications(subscriptions, Change("tools"))]
    assert marks == [("1", "1"), (1, 1), (0, 0), ("", "")]


def test_streams_get_updates_with_the_uri_they_subscribed_to():
    subscriptions = Subscriptions()
    subscriptions.listen(Listen(1, uris={"File": "key", "other": "else"}))
    (message, about), *rest = notifications(subscriptions, Change("resource", "key"))
    assert (message.params["uri"], about, rest) == ("File", 1, [])


def test_acknowledgements_list_only_the_accepted_subscriptions():
    listen = Listen(1, frozenset({"resources", "tools"}), {"b": "x", "a": "y"})
    expected = {"toolsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": ["b", "a"]}
    assert listen.acknowledged_filter() == expected
    assert Listen(1).acknowledged_filter() == {}
