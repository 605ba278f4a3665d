"""What the notebooks' graded cells call: one module per assignment, and the quiz.

A check takes the learner's function or value and either prints that all is well or raises
``CheckFailed``, whose text says what is wrong in the learner's own terms.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from specdec_lab.checks.failure import CheckFailed

__all__ = ["CheckFailed", "afresh"]


def afresh(module: str) -> ModuleType:
    """An assignment's checks, loaded anew: nothing that a notebook has replaced in them survives."""
    for name in [name for name in sys.modules if name.startswith(f"{__name__}.")]:
        del sys.modules[name]
    return import_module(f"{__name__}.{module}")
