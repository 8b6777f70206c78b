"""The tools and resources that the server offers to clients."""
