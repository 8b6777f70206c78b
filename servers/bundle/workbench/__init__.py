"""The workbench: a page in the browser that shows the servers' features, and uses them."""
