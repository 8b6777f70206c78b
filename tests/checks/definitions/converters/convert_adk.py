"""Turns input schemas into function declarations of Gemini, as Google's ADK does with the tools of an MCP server.

Reads a JSON object of schemas by name, and writes one of what they became.
"""

import json
import sys
from typing import Any

from google.adk.tools._gemini_schema_util import _to_gemini_schema


def converted(schema: dict[str, Any]) -> Any:
    """The schema of the parameters."""
    return _to_gemini_schema(schema).model_dump(mode="json", exclude_none=True)


json.dump({name: converted(schema) for name, schema in json.load(sys.stdin).items()}, sys.stdout)
