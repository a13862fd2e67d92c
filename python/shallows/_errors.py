"""Exceptions."""

from __future__ import annotations


class ScenarioError(ValueError):
    """A scenario that cannot be run.

    ``message`` says what is wrong, ``file`` and ``line`` where (``None`` for a setting), and
    ``hint`` what to write instead, if that can be said.
    """

    def __init__(
        self,
        shown: str,
        message: str,
        file: str | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(shown)
        self.message = message
        self.file = file
        self.line = line
        self.hint = hint

    def __reduce__(self):
        # Workers in other processes raise it too.
        return type(self), (str(self), self.message, self.file, self.line, self.hint)
