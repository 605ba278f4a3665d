"""nbgrader's settings for this course. ``nbgrader_config.py`` is this, applied to the checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearHiddenTests,
    ClearMarkScheme,
    ClearOutput,
    ComputeChecksums,
    DeduplicateIds,
    LimitOutput,
    LockCells,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
    SaveCells,
)

from specdec_lab.course.restoring import RestoreCells
from specdec_lab.course.running import ExecuteWithLimits
from specdec_lab.course.steps import NOT_COPIED, ClearSolutionRegions, SaveBonus, make_gradable


def configure(c: Any, root: Path) -> None:
    """Set nbgrader up for the course in ``root``.

    Args:
        c: a traitlets config, such as the one in ``nbgrader_config.py``.
        root: the folder with ``solutions/`` and ``notebooks/``; ``submitted/`` and the rest go there.
    """
    _put_scripts_on_path()
    c.CourseDirectory.root = str(root)
    c.CourseDirectory.source_directory = "solutions"
    c.CourseDirectory.release_directory = "notebooks"
    # The percent-format source beside each answer key must not travel with the release, and Python
    # files beside a submission must not stand in for a library.
    c.CourseDirectory.ignore = [
        ".ipynb_checkpoints",
        "__pycache__",
        "*.pyc",
        "*.py",
        "feedback",
        f"*{NOT_COPIED}",
    ]
    c.GenerateAssignment.preprocessors = [
        LockCells,
        ClearSolutionRegions,
        ClearOutput,
        CheckCellMetadata,
        ComputeChecksums,
        SaveCells,
        ClearHiddenTests,
        ClearMarkScheme,
        ComputeChecksums,
        CheckCellMetadata,
    ]
    c.Autograde.sanitize_preprocessors = [
        RestoreCells,
        ClearOutput,
        DeduplicateIds,
        OverwriteKernelspec,
        OverwriteCells,
        CheckCellMetadata,
    ]
    c.Autograde.autograde_preprocessors = [
        ExecuteWithLimits,
        LimitOutput,
        SaveAutoGrades,
        SaveBonus,
        AssignLatePenalties,
        CheckCellMetadata,
    ]
    c.Autograde.pre_convert_hook = make_gradable
    c.ClearSolutions.code_stub = {
        "python": '# YOUR CODE HERE\nraise NotImplementedError("not implemented yet")'
    }
    c.ClearSolutions.text_stub = "*Your answer here (double-click to write).*"
    if hasattr(KernelManager, "transport_encryption"):
        # No other user of the machine can listen in on a kernel (and newer kernels warn without it).
        c.KernelManager.transport_encryption = "auto"
    # Feedback pages show the views' static faces. With their state they would fetch a program for it.
    c.NotebookClient.store_widget_state = False
    # `nbgrader zip_collect` takes the choices in the quiz along with the notebook.
    c.FileNameCollectorPlugin.valid_ext = [".ipynb", ".json"]
    # Validating a learner's copy runs the experiments at their usual size; grading does not.
    c.Execute.timeout = 300
    c.ExecuteWithLimits.timeout = 60


def _put_scripts_on_path() -> None:
    """nbgrader starts ``alembic`` by its bare name; an environment that is not activated hides it."""
    scripts = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", "")
    if scripts not in path.split(os.pathsep):
        os.environ["PATH"] = scripts + os.pathsep + path
