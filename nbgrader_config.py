"""nbgrader reads this from the current folder: its commands and the Formgrader work from here."""

from pathlib import Path

from specdec_lab.course.settings import configure

configure(get_config(), Path(__file__).parent.resolve())  # noqa: F821 (nbgrader provides it)
