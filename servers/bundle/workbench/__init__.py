"""The workbench: a page in the browser that shows what the servers offer, and uses it."""
