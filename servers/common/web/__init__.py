"""The modules and styles that web pages of the servers share, and the code that assembles a page from them."""
