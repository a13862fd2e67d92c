"""Exceptions."""

from __future__ import annotations


class ScenarioError(ValueError):
    """A scenario that cannot be run.

    ``message`` says what is wrong, ``file`` and ``line`` where (``None`` for a setting), ``key``
    which assignment to a :class:`Scenario` it was, and ``hint`` what to write instead, if that can
    be said.
    """

    # As users import it.
    __module__ = "shallows"

    def __init__(
        self,
        shown: str,
        message: str,
        file: str | None = None,
        line: int | None = None,
        hint: str | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(shown)
        self.message = message
        self.file = file
        self.line = line
        self.hint = hint
        self.key = key

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[object, ...]]:
        # Workers in other processes raise it too.
        return type(self), (str(self), self.message, self.file, self.line, self.hint, self.key)
