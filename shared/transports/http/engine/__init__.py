"""uvicorn's connections with what they lack, and how they end."""
