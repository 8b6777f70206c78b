"""The tools, resources and prompts that all SQL servers offer."""
