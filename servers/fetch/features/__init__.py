"""The tools, resources and prompts of the fetch server."""
