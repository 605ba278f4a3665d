"""The command line's parser, shared by its parts."""

from __future__ import annotations

import argparse
from typing import NoReturn, TypeAlias


class OneLineParser(argparse.ArgumentParser):
    """Answers a wrong argument with one line instead of a page of usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


Commands: TypeAlias = "argparse._SubParsersAction[OneLineParser]"
