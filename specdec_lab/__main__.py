"""``python -m specdec_lab`` is ``specdec-lab``."""

import sys

from specdec_lab.cli import main

sys.exit(main())
