"""The one switch that makes experiments small: for grading and testing, where nobody reads them."""

from __future__ import annotations

import os
from typing import TypeVar

SMALL = "SPECDEC_LAB_SMALL"
"""Set to 1 in the environment (as grading does), experiments run at a small size."""

Size = TypeVar("Size")


def small() -> bool:
    """Whether the switch is on."""
    return os.environ.get(SMALL, "") not in ("", "0")


def sized(usual: Size, when_small: Size) -> Size:
    """A number of tokens, repeats and so on: ``usual``, or ``when_small`` under the switch."""
    return when_small if small() else usual
