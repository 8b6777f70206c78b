"""The servers at work, as a desktop host would start them."""
