"""Who wants which change: subscriptions of the handshake era and streams of the stateless one."""

from shared.protocol.session.events import Change
from shared.protocol.session.subscriptions import Listen, Subscriptions
from shared.protocol.wire.jsonrpc import Notification

ID = "io.modelcontextprotocol/subscriptionId"
TOOLS = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"


def told(subscriptions, change, *, handshake_open=False):
    return list(subscriptions.notifications_for(change, handshake_open=handshake_open))


def subscribed(**uris):
    subscriptions = Subscriptions()
    for uri, key in uris.items():
        subscriptions.subscribe(uri, key)
    return subscriptions


def test_a_list_change_goes_to_every_open_session_and_no_other():
    assert told(Subscriptions(), Change("tools"), handshake_open=True) == [(Notification(TOOLS), None)]
    assert told(Subscriptions(), Change("tools")) == []


def test_an_update_is_matched_by_key_and_told_under_each_spelling_of_the_client():
    subscriptions = subscribed(Mixed="key", other="else")
    assert told(subscriptions, Change("resource", "key")) == [(Notification(UPDATED, {"uri": "Mixed"}), None)]
    subscriptions = subscribed(a="key", A="key")
    assert [message.params["uri"] for message, _ in told(subscriptions, Change("resource", "key"))] == ["a", "A"]


def test_to_subscribe_again_replaces_and_gives_the_old_key_back():
    subscriptions = subscribed(a="old")
    assert subscriptions.subscribe("a", "new") == ["old"]
    assert dict(subscriptions.subscribed) == {"a": "new"}


def test_to_unsubscribe_gives_the_key_back_once():
    subscriptions = subscribed(a="key")
    assert (subscriptions.unsubscribe("a"), subscriptions.unsubscribe("a")) == (["key"], [])


def test_an_unsubscription_that_overtakes_a_subscription_counts():
    subscriptions = Subscriptions()
    with subscriptions.begin_subscription("a") as still_wanted:
        assert still_wanted()
        subscriptions.unsubscribe("a")
        assert not still_wanted()


def test_of_two_subscriptions_to_one_resource_under_way_the_later_is_wanted():
    subscriptions = Subscriptions()
    with subscriptions.begin_subscription("a") as first:
        with subscriptions.begin_subscription("a") as second:
            assert (first(), second()) == (False, True)
        assert not first()


def test_a_stream_hears_only_what_it_asked_for_until_it_is_closed():
    subscriptions = Subscriptions()
    subscriptions.listen(Listen(1, frozenset({"tools"})))
    assert told(subscriptions, Change("prompts")) == []
    assert told(subscriptions, Change("tools")) == [(Notification(TOOLS, {"_meta": {ID: 1}}), 1)]
    assert subscriptions.close(1) is not None
    assert subscriptions.close(1) is None
    assert told(subscriptions, Change("tools")) == []


def test_each_stream_gets_its_own_copy_under_its_own_id():
    subscriptions = Subscriptions()
    for id_ in ("1", 1, 0, ""):
        subscriptions.listen(Listen(id_, frozenset({"tools"})))
    marks = [(message.params["_meta"][ID], about) for message, about in told(subscriptions, Change("tools"))]
    assert marks == [("1", "1"), (1, 1), (0, 0), ("", "")]


def test_a_stream_hears_of_a_resource_under_its_own_spelling():
    subscriptions = Subscriptions()
    subscriptions.listen(Listen(1, uris={"File": "key", "other": "else"}))
    (message, about), *rest = told(subscriptions, Change("resource", "key"))
    assert (message.params["uri"], about, rest) == ("File", 1, [])


def test_the_acknowledgement_names_what_is_served_and_leaves_out_the_rest():
    listen = Listen(1, frozenset({"resources", "tools"}), {"b": "x", "a": "y"})
    expected = {"toolsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": ["b", "a"]}
    assert listen.acknowledged_filter() == expected
    assert Listen(1).acknowledged_filter() == {}
