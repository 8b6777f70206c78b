"""Output of the demo about calls that end other than expected."""

from typing import Any
from unittest.mock import AsyncMock

import pytest

from servers.bundle.demo.printing import DemoOutput
from shared.protocol.types.content import TextContent
from shared.protocol.types.tools import CallToolResult


@pytest.mark.parametrize(
    ("method", "is_error", "reason"),
    [("call", True, "fetch failed: the text"), ("expect_refusal", False, "fetch was not refused: the text")],
)
async def test_the_error_says_how_a_call_has_ended(method: str, is_error: bool, reason: str) -> None:
    result = CallToolResult(content=[TextContent(text="the text")], is_error=is_error)
    client: Any = AsyncMock(**{"call_tool.return_value": result})
    with pytest.raises(RuntimeError, match=f"^{reason}$"):
        await getattr(DemoOutput(full=True, brief=False), method)(client, "fetch")
