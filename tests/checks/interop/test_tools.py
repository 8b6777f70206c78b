"""The official client calls our tools: what no row of all clients has."""

from .peers import Case


async def test_long_result_follows_a_progress_report(case: Case) -> None:
    """Over HTTP a stream carries what comes after a report; the client takes an event of 1 MiB at most."""

    async def progress(_done: float, _total: float | None, _message: str | None) -> None:
        pass

    async with case.connect("bench") as client:
        arguments = {"characters": 440_000, "reports": 1}
        result = await client.call_tool("long", arguments, progress_callback=progress)
    assert result.content[0].text == "ø" * 440_000


async def test_header_of_an_unlisted_tool_is_learned(case: Case) -> None:
    """The client calls without the header, is told of the mismatch over HTTP, lists and calls again."""
    async with case.connect("bench") as client:
        result = await client.call_tool("weather", {"city": "Oslo", "days": 1})
    assert result.content[0].text == "1 days of rain in Oslo"


async def test_wrong_arguments_are_a_result(case: Case) -> None:
    async with case.connect("bench") as client:
        result = await client.call_tool("echo", {"txet": "x"})
    assert result.is_error
    assert "did you mean 'text'?" in result.content[0].text
