"""The course's interactive views: runs, audits, speedups and quizzes, in JupyterLab and without it.

Each view shows records and formulas of the floors below and computes nothing of its own. Each has a
static face, which is what remains where no widget runs: in nbconvert, on GitHub, on a feedback page, in
a terminal.
"""

from specdec_lab.widgets.acceptance import acceptance_map
from specdec_lab.widgets.asking import ask as quiz
from specdec_lab.widgets.audit_view import audit_view
from specdec_lab.widgets.explorer import explore
from specdec_lab.widgets.watching import watch

__all__ = ["acceptance_map", "audit_view", "explore", "quiz", "watch"]
