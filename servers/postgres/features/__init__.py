"""What clients see: tools, resources and a prompt."""
