"""What the operator allows of a server of others: which tools, under which names, how large and how long."""
