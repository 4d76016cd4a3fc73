"""Failures that the kernel expects: a rule refuses, a writer was overtaken, or an operator has to act."""


class Refused(Exception):
    """A business rule says no. `code` is stable and becomes the problem type at the HTTP edge."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class StaleVersion(Exception):
    """The caller named the version it had seen (If-Match), and the stream has moved on."""

    def __init__(self, version: int) -> None:
        super().__init__(f"The current version is {version}.")
        self.version = version


class KeyReused(Exception):
    """This Idempotency-Key was used before, with another request."""


class Contended(Exception):
    """Other writers were faster at every attempt; nothing was written."""


class OperatorError(Exception):
    """Something outside the code is wrong (a port, a file, a server). Says what happened and what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
