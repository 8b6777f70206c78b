"""Extensions of uvicorn's connections: limits, and a graceful close."""
