"""What goes wrong in the domain of a server."""

__all__ = ["CodedError"]


class CodedError(Exception):
    """A refusal or failure: `code` for programs, which stays the same, `reason` and `suggestion` for readers."""

    def __init__(self, code: str, reason: str, suggestion: str = "") -> None:
        self.code = code
        self.reason = reason
        self.suggestion = suggestion
        super().__init__(code, reason, suggestion)

    def __str__(self) -> str:
        return f"{self.reason}. {self.suggestion}" if self.suggestion else self.reason
