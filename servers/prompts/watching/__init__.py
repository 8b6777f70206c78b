"""Notice of changes to the folders of prompts."""
