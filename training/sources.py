"""Openings of code: the first lines of functions in Python's own standard library (PSF licence)."""

from __future__ import annotations

import ast
import random
import sysconfig
from functools import cache
from pathlib import Path

MODULES = """
argparse ast bisect calendar collections/__init__ configparser csv dataclasses datetime decimal difflib
email/message fractions functools getopt glob gzip heapq html/parser http/client inspect ipaddress
json/encoder json/decoder logging/__init__ mailbox numbers optparse pathlib pickle pprint queue random
sched shlex shutil smtplib statistics string tarfile tempfile textwrap threading timeit tokenize trace
turtle typing unittest/case urllib/parse uuid wave zipfile
"""


def code_openings(rng: random.Random, count: int) -> list[str]:
    """The first few lines of ``count`` functions; fewer if the library's source is not there."""
    functions = _functions()
    chosen = rng.sample(functions, min(count, len(functions)))
    return ["\n".join(lines[: rng.randint(1, min(6, len(lines) - 1))]) + "\n" for lines in chosen]


@cache
def _functions() -> list[list[str]]:
    """The lines of every function of at least four lines, without its module's indentation."""
    library = Path(sysconfig.get_path("stdlib"))
    found = []
    for name in MODULES.split():
        path = library / f"{name}.py"
        if not path.exists():
            continue
        source = path.read_text()
        lines = source.splitlines()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 3:
                body = lines[node.lineno - 1 : node.end_lineno]
                found.append([line[node.col_offset :] for line in body])
    return found
