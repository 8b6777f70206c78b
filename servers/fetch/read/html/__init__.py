"""Reading HTML: what of a page is its content, and how that is written down."""
