"""Functions with parameters that are known at run time only."""

from inspect import Parameter
from typing import Annotated, Any

import pytest
from pydantic import Field

from shared import Context
from shared.errors import DeclarationError
from shared.server.tools import signed
from tests.shared.server.peer import ERAS, server, talking

PARAMETERS = [
    Parameter("region", Parameter.KEYWORD_ONLY, annotation=Annotated[str, Field(description="where")]),
    Parameter("year", Parameter.KEYWORD_ONLY, annotation=int, default=2024),
]


async def run(context: Context[Any], arguments: dict[str, Any]) -> dict[str, Any]:
    assert isinstance(context, Context)
    return arguments


def app_with(*parameters: Parameter):
    app = server()
    app.tool(description="Sales of a region.")(signed(run, "sales", parameters, dict[str, Any]))
    return app


def test_the_parameters_are_listed():
    (tool,) = app_with(*PARAMETERS).tools.listed(None)
    assert (tool["name"], tool["description"]) == ("sales", "Sales of a region.")
    assert tool["inputSchema"] == {
        "type": "object",
        "properties": {
            "region": {"type": "string", "description": "where"},
            "year": {"type": "integer", "default": 2024},
        },
        "required": ["region"],
    }


@pytest.mark.parametrize("era", ERAS)
async def test_the_arguments_are_checked_and_handed_on(era):
    async with talking(app_with(*PARAMETERS), era) as peer:
        result = (await peer.call("sales", region="north"))["result"]
        wrong = await peer.call("sales", region="north", yaer=1)
    assert result["structuredContent"] == {"region": "north", "year": 2024}
    assert "did you mean 'year'?" in str(wrong)


def test_a_parameter_that_can_not_be_one_is_refused():
    with pytest.raises(DeclarationError, match="_hidden"):
        app_with(Parameter("_hidden", Parameter.KEYWORD_ONLY, annotation=str)).tools.listed(None)
