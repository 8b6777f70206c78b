"""From the bytes of a page to what a reader wants of it, in processes that can be killed."""
