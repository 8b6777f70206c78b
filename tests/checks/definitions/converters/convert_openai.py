"""Turns input schemas into OpenAI's strict mode, as its Agents SDK does with the tools of an MCP server.

Reads a JSON object of schemas by name, and writes one of what they became, or of the reason why not.
"""

import json
import sys
from typing import Any

from agents.exceptions import UserError
from agents.strict_schema import ensure_strict_json_schema


def converted(schema: dict[str, Any]) -> Any:
    """The schema, or the reason."""
    try:
        return ensure_strict_json_schema(schema)
    except UserError as error:
        return str(error)


json.dump({name: converted(schema) for name, schema in json.load(sys.stdin).items()}, sys.stdout)
