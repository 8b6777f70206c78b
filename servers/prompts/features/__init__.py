"""The features for clients: prompts, resources, tools and skills."""
