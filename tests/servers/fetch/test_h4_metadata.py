"""H4: where clouds hand out credentials."""

import pytest

from servers.fetch.errors import FetchError
from servers.fetch.network.address_policy import Policy, Rules
from tests.servers.fetch.reaching import Answers, reaching

ADDRESSES = ["169.254.169.254", "169.254.170.2", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "fd20:ce::254"]
EVERYTHING = ["0.0.0.0/0:*", "[::/0]:*", "metadata.test:*"]
SPELLINGS = [
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "[::ffff:169.254.169.254]",
    "[::169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1:a9fe:a9:fe00::]",
    "[2002:a9fe:a9fe::1]",
    "[2606:4700::5efe:a9fe:a9fe]",
    "[fd00:ec2::254]",
    "[FD00:0EC2:0:0::254]",
    "100.100.100.200",
    "168.63.129.16",
    "[64:ff9b::168.63.129.16]",
]


@pytest.mark.parametrize("allowed", [[], EVERYTHING])
@pytest.mark.parametrize("address", ADDRESSES)
async def test_h4_a_name_never_leads_there(address: str, allowed: list[str]) -> None:
    async with reaching(Answers(metadata_test=[address]), allow_private=allowed) as web:
        assert (await web.refused("http://metadata.test/latest/meta-data/")).code == "blocked_address"


@pytest.mark.parametrize("host", SPELLINGS)
async def test_h4_no_spelling_of_the_address_leads_there(host: str) -> None:
    async with reaching(allow_private=EVERYTHING) as web:
        assert (await web.refused(f"http://{host}/latest/meta-data/")).code == "blocked_address"


@pytest.mark.parametrize("address", ADDRESSES)
def test_h4_an_operator_may_name_one_by_its_address(address: str) -> None:
    entry = f"[{address}]" if ":" in address else address
    policy = Policy(Rules(allow_private=[entry]))
    policy.check_address(address, address, 80)
    for other in {*ADDRESSES} - {address}:
        with pytest.raises(FetchError):
            policy.check_address(other, other, 80)


async def test_h4_nobody_is_told_how_to_open_it() -> None:
    async with reaching(Answers()) as web:
        refused = await web.refused("http://169.254.169.254/latest/meta-data/")
    assert str(refused) == "169.254.169.254 is where a cloud hands out credentials"
