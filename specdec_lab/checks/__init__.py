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
    """An assignment's checks, loaded anew with all of the library beneath them.

    Nothing that a notebook has replaced in either survives. The rest of the notebook keeps the library
    that it has imported, so that its objects and classes still belong together.
    """
    library = _take_out(__name__.partition(".")[0])
    try:
        return import_module(f"{__name__}.{module}")
    finally:
        checks = _take_out(__name__)
        _take_out(__name__.partition(".")[0])
        sys.modules.update(library | checks)


def _take_out(package: str) -> dict[str, ModuleType]:
    """Remove a package and all in it from the loaded modules; what was removed."""
    inside = [name for name in sys.modules if name == package or name.startswith(f"{package}.")]
    return {name: sys.modules.pop(name) for name in inside}
