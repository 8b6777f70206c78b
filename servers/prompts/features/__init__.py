"""The features that clients get: prompts, resources, tools and skills."""
