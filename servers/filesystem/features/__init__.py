"""What a client sees: the tools and the resources."""
