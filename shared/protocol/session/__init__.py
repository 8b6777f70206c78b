"""Sessions: the meaning of messages, in both eras and on both sides."""
