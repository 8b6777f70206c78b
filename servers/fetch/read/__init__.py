"""Conversion of the bytes of a page to the requested format, in processes that can be killed."""
