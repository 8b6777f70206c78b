"""A bench for authors of clients, with every behaviour that a client of the protocol can meet."""
