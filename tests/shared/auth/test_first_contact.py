"""The first request to each issuer: repeated until it succeeds, and the text of the state until then."""

import anyio

from shared.auth.first_contact import FirstContact
from shared.errors import AuthError
from tests.clock import forward
from tests.wire import PATIENCE


class Answers:
    """An issuer that fails until it `answers`."""

    def __init__(self, answers: bool) -> None:
        self.answers = answers
        self.count = 0

    async def __call__(self) -> None:
        self.count += 1
        if not self.answers:
            raise AuthError("down")


async def test_an_issuer_is_requested_until_it_answers() -> None:
    issuer = Answers(False)
    contact = FirstContact({"https://login.example": issuer})
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(contact.reach_issuers)
            for count in (1, 2):
                while issuer.count < count:
                    await anyio.sleep(0)
                assert contact.unreached == "no answer yet from the issuer https://login.example"
                issuer.answers = count == 2
                forward(10.0)
    assert issuer.count == 3
    assert contact.unreached is None


async def test_an_answer_of_any_issuer_is_enough() -> None:
    contact = FirstContact({"a": Answers(False), "b": Answers(True)})
    assert contact.unreached == "no answer yet from the issuer a, b"
    with anyio.move_on_after(0.01):
        await contact.reach_issuers()
    assert contact.unreached is None
