"""The peer: one prompt of the library on FastMCP 4, as its documentation would have it written.

It runs in an environment of its own, where nothing of this project is but this file.
"""

from typing import Literal

from fastmcp import FastMCP

server = FastMCP("prompts")


@server.prompt(name="review-07777", title="Review part 7777")
def review(code: str, focus: Literal["everything", "security", "performance"] = "everything") -> str:
    """Find what is wrong with a part of the project, most serious first."""
    only = "" if focus == "everything" else f" Look for {focus} only."
    return f"Review the code below.{only}\n\n{code}"


if __name__ == "__main__":
    server.run("stdio", show_banner=False, log_level="WARNING")
