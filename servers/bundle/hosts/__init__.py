"""The configurations of clients: where each is, what its entries look like, and how to change it."""
