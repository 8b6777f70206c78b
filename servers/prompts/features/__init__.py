"""What clients see: prompts, resources, tools and skills."""
