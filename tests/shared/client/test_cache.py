"""`ResponseCache`: which results are stored, for which clients, how long, and in how many bytes."""

from typing import Any

import pytest

from shared.client.cache import ENTRY_BYTES, MAX_FRESH_SECONDS, CacheKey, ResponseCache
from shared.protocol.types.resources import ETAG
from tests.clock import Clock

HOUR = {"ttlMs": 3_600_000}
TAGGED = {"_meta": {ETAG: "1"}}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> ResponseCache:
    return ResponseCache(10 * ENTRY_BYTES, clock=clock)


def _key(target: str | None = None, *, owner: str = "we", method: str = "resources/read") -> CacheKey:
    return CacheKey("server", owner, method, target)


def _store(cache: ResponseCache, cache_key: CacheKey, **result: Any) -> None:
    with cache.track(cache_key) as pending:
        pending.store(result)


def _fresh(cache: ResponseCache, cache_key: CacheKey) -> dict[str, Any] | None:
    entry = cache.find(cache_key)
    return entry.result() if entry is not None and cache.is_fresh(entry) else None


def test_a_result_is_fresh_for_its_ttl(cache: ResponseCache, clock: Clock) -> None:
    _store(cache, _key("a"), ttlMs=1500)
    clock.now = 1.4
    assert _fresh(cache, _key("a")) == {"ttlMs": 1500}
    clock.now = 1.5
    assert _fresh(cache, _key("a")) is None


@pytest.mark.parametrize("ttl", [None, 0, -1, True, "1000", 1.5e6, [1]])
def test_a_result_without_a_valid_ttl_is_not_stored(cache: ResponseCache, ttl: Any) -> None:
    _store(cache, _key("a"), ttlMs=ttl)
    _store(cache, _key("b"))
    assert cache.find(_key("a")) is cache.find(_key("b")) is None
    assert cache.size == 0


def test_the_ttl_has_a_maximum(cache: ResponseCache, clock: Clock) -> None:
    _store(cache, _key("a"), ttlMs=10**400)
    clock.now = MAX_FRESH_SECONDS - 1
    assert _fresh(cache, _key("a"))
    clock.now = MAX_FRESH_SECONDS
    assert not _fresh(cache, _key("a"))


@pytest.mark.parametrize("kind", ["input_required", "task", "unheard-of"])
def test_only_complete_results_are_stored(cache: ResponseCache, kind: str) -> None:
    _store(cache, _key("a"), **HOUR, resultType=kind)
    assert cache.find(_key("a")) is None
    _store(cache, _key("a"), **HOUR, resultType="complete")
    assert _fresh(cache, _key("a"))


def test_a_stored_result_is_returned_unchanged(cache: ResponseCache) -> None:
    result = {**HOUR, "big": 2**80, "float": 1e300, "none": None, "text": 'é\u2028"\x00', "list": [{"a": [True]}]}
    _store(cache, _key("a"), **result)
    assert _fresh(cache, _key("a")) == result


def test_a_result_with_a_lone_surrogate_is_not_stored(cache: ResponseCache) -> None:
    _store(cache, _key("a"), **HOUR, text="half \ud83d")
    assert cache.find(_key("a")) is None


def test_changes_to_a_returned_result_do_not_reach_the_cache(cache: ResponseCache) -> None:
    _store(cache, _key("a"), **HOUR, contents=[])
    first = _fresh(cache, _key("a"))
    assert first is not None
    first["contents"].append("more")
    assert _fresh(cache, _key("a")) == {**HOUR, "contents": []}


# Private and public results


def test_private_results_are_found_only_by_their_client(cache: ResponseCache) -> None:
    _store(cache, _key("a"), **HOUR)
    _store(cache, _key("b"), **HOUR, cacheScope="private")
    _store(cache, _key("c"), **HOUR, cacheScope="whoever")
    assert [_fresh(cache, _key(target, owner="they")) for target in "abc"] == [None] * 3


def test_public_results_are_found_by_all_clients_of_the_server(cache: ResponseCache) -> None:
    _store(cache, _key("a"), **HOUR, cacheScope="public")
    assert _fresh(cache, _key("a", owner="they"))
    assert not _fresh(cache, CacheKey("another", "they", "resources/read", "a"))


def test_a_private_result_replaces_a_public_one(cache: ResponseCache) -> None:
    _store(cache, _key("a"), **HOUR, cacheScope="public")
    _store(cache, _key("a", owner="they"), **HOUR, cacheScope="private")
    assert not _fresh(cache, _key("a"))


# Changes


def test_a_change_expires_matching_results(cache: ResponseCache) -> None:
    _store(cache, _key("a"), **HOUR)
    _store(cache, _key("b"), **HOUR)
    cache.expire(lambda one: one.target == "a")
    assert cache.find(_key("a")) is None
    assert _fresh(cache, _key("b"))


def test_an_answer_from_before_a_change_is_not_stored(cache: ResponseCache) -> None:
    with cache.track(_key("a")) as pending:
        cache.expire(lambda one: one.target == "a")
        pending.store({**HOUR})
    assert cache.find(_key("a")) is None


def test_failed_requests_are_no_longer_tracked(cache: ResponseCache) -> None:
    with pytest.raises(ConnectionError), cache.track(_key("a")):
        raise ConnectionError
    cache.expire(lambda one: pytest.fail("nothing is under way"))


def test_an_answer_is_stored_after_an_unrelated_change(cache: ResponseCache) -> None:
    with cache.track(_key("a")) as pending:
        cache.expire(lambda one: one.target == "b")
        pending.store({**HOUR})
    assert _fresh(cache, _key("a"))


def test_a_result_with_an_etag_is_kept_after_it_expires(cache: ResponseCache) -> None:
    _store(cache, _key("a"), **HOUR, **TAGGED)
    _store(cache, _key("b"), **TAGGED)
    cache.expire(lambda one: True)
    for target in "ab":
        entry = cache.find(_key(target))
        assert entry is not None
        assert entry.etag == "1"
        assert not cache.is_fresh(entry)


@pytest.mark.parametrize("meta", [None, [], {ETAG: 1}, {ETAG: "x" * 1000}])
def test_an_invalid_etag_is_ignored(cache: ResponseCache, meta: Any) -> None:
    _store(cache, _key("a"), _meta=meta)
    assert cache.find(_key("a")) is None


def test_a_forgotten_result_is_gone(cache: ResponseCache) -> None:
    _store(cache, _key("a"), **TAGGED)
    cache.forget(lambda one: one.owner == "we")
    assert cache.find(_key("a")) is None
    assert cache.size == 0


# Size


def test_the_least_recently_used_result_is_evicted_first(cache: ResponseCache) -> None:
    for target in "abcdefghi":
        _store(cache, _key(target), **HOUR)
    cache.find(_key("a"))
    _store(cache, _key("z"), **HOUR)
    assert cache.size <= cache.max_bytes
    assert [target for target in "abcdefghiz" if cache.find(_key(target))] == list("acdefghiz")


def test_a_new_result_replaces_the_old_one_of_its_key(cache: ResponseCache) -> None:
    for _ in range(100):
        _store(cache, _key("a"), **HOUR)
    assert cache.size < 2 * ENTRY_BYTES


def test_a_result_larger_than_the_cache_is_not_stored(cache: ResponseCache) -> None:
    _store(cache, _key("a"), **HOUR)
    for result in ({"contents": [{"text": "x" * cache.max_bytes}]}, {"tools": ["x" * cache.max_bytes]}):
        _store(cache, _key("b"), **HOUR, **result)
    assert cache.find(_key("b")) is None
    assert _fresh(cache, _key("a"))


def test_the_size_of_the_key_counts(cache: ResponseCache) -> None:
    _store(cache, _key("a"), **HOUR)
    _store(cache, _key("b" * 8 * ENTRY_BYTES), **HOUR)
    assert cache.find(_key("a")) is None
    assert cache.size <= cache.max_bytes
