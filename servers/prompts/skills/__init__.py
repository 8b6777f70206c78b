"""The prompts of the libraries as skills."""
