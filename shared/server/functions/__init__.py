"""The functions that authors declare: validation of their arguments and return values, and their schemas."""
