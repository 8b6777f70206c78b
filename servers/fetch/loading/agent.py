"""How the server presents itself where the operator names nothing else."""

import re

__all__ = ["default_agent", "product_token"]


def default_agent(version: str) -> str:
    """The honest value of `User-Agent`: the name, the version, and what the requests are for."""
    return f"mcp-bundle-fetch/{version} (reads single pages that a person or a model asks for; no crawler)"


def product_token(agent: str) -> str:
    """The name in `agent` that robots.txt goes by: what stands before the first version."""
    found = re.match(r"[A-Za-z_-]+", agent)
    return found[0].lower() if found else ""
