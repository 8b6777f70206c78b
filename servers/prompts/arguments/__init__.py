"""The arguments of a prompt: values from text, and suggestions for text."""
