"""Extensions of uvicorn's connections: limits, and an orderly end."""
