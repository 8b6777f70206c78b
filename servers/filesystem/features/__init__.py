"""The tools and resources of the server as clients see them."""
