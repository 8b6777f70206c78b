"""Turns input schemas into function declarations of Gemini, as google-genai does with the tools of an MCP session.

Reads a JSON object of schemas by name, and writes one of what they became.
"""

import json
import sys
from types import SimpleNamespace
from typing import Any

from google.genai._mcp_utils import mcp_to_gemini_tool


def converted(name: str, schema: dict[str, Any]) -> Any:
    """The schema of the parameters."""
    tool = mcp_to_gemini_tool(SimpleNamespace(name=name, description=name, inputSchema=schema))
    return tool.function_declarations[0].parameters.model_dump(mode="json", exclude_none=True)


json.dump({name: converted(name, schema) for name, schema in json.load(sys.stdin).items()}, sys.stdout)
