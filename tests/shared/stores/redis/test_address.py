"""`--store URL`: what is none is refused at once, in words that show nothing of a password."""

import pytest

from shared.stores.redis.address import connecting

SECRET = "geheim"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("localhost:6379", "begins with redis://"),
        (f"redis://:{SECRET}/1@host", "percent-encoded"),
        (f"redis://:{SECRET}#1@host", "percent-encoded"),
        (f"redis://:{SECRET}?1@host", "percent-encoded"),
        (f"redis://:{SECRET}℀@host", "percent-encoded"),
        (f"redis://[{SECRET}@host", "percent-encoded"),
        (f"redis+sentinel://:{SECRET}/1@host", "percent-encoded"),
        (f"redis+sentinel://one:{SECRET},two", "percent-encoded"),
        (f"redis+sentinel://host/name/{SECRET}", "number of a database"),
        (f"redis://host/{SECRET}", "number of a database"),
        (f"redis://host/0?{SECRET}=1", "is no option"),
        (f"redis://host/0?health_check_interval={SECRET}", "is no option"),
    ],
)
def test_what_is_no_url_is_refused_without_a_word_of_it(url: str, said: str) -> None:
    with pytest.raises(ValueError, match="--store: ") as refused:
        connecting(url, None)
    assert said in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("option", ["socket_timeout=100", "decode_responses=yes", "protocol=3", "password=another"])
def test_what_the_program_relies_on_no_url_sets(option: str) -> None:
    found = connecting(f"redis://host/0?{option}", SECRET)().connection_pool.connection_kwargs
    assert (found["socket_timeout"], found["decode_responses"], found["protocol"]) == (2.0, False, 2)
    assert found["password"] == SECRET


def test_where_it_is() -> None:
    found = connecting("redis://ada:p%40ss@[::1]:1/2", None)().connection_pool.connection_kwargs
    assert (found["host"], found["port"]) == ("::1", 1)
    assert (found["username"], found["password"], found["db"]) == ("ada", "p@ss", 2)
    assert connecting("unix:///run/redis.sock?db=3", None)().connection_pool.connection_kwargs["db"] == 3
