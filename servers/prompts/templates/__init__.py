"""Renders the templates of prompts to messages, and converts prompts for hosts."""
