"""What pages of the servers have in common: modules, styles, and how one page is made of them."""
