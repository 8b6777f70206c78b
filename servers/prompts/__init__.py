"""A library of prompts: a folder of Markdown files that are at once prompts and skills."""
