"""Reading pages of HTML: their content, their parts, their links, and what they say of themselves."""
