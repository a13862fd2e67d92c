"""Values of scenarios as the native module takes them."""

from __future__ import annotations

import json
from typing import Any

from ._errors import ScenarioError


def encode(value: Any) -> str:
    """A value in JSON; numbers and arrays of numpy are like those of Python."""
    try:
        return json.dumps(value, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        shown = f"{value!r} is no value of a scenario: {error}"
        raise ScenarioError(shown, shown, hint="write a number, a text, a list or a dict") from None


def _plain(value: Any) -> Any:
    # Scalars and arrays of numpy.
    for convert in ("item", "tolist"):
        if hasattr(value, "dtype") and hasattr(value, convert):
            try:
                return getattr(value, convert)()
            except ValueError:
                continue
    raise TypeError(f"{type(value).__name__} is neither a number, a text, a list nor a dict")
