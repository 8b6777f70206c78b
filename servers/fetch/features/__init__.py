"""What the fetch server offers: its tools, resources and prompt."""
