"""What clients see of any database: how tools, resources and prompts do their work."""
