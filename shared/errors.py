"""The two kinds of expected failure: what the shop refuses, and what an operator has to mend."""


class Refused(Exception):
    """A rule of the shop says no. `code` is stable and becomes the problem type at the HTTP edge."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class OperatorError(Exception):
    """Something outside the code is wrong (a port, a file, a server): what happened, and what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
