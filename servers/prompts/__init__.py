"""Server for prompt libraries: folders of Markdown files that are both prompts and skills."""
