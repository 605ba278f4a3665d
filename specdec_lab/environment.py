"""Is this computer ready? One table that says what was found and what is missing."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass

import torch
from rich.table import Table

from specdec_lab.provenance import hardware_name, installed
from specdec_lab.weights import EMBEDDED, problems


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    what: str
    found: str
    fine: bool
    advice: str = ""


def check_environment() -> list[Check]:
    """Look at Python, the packages, the weights, the memory and the device."""
    return [look() for look in (_python, _packages, _weights, _memory, _device)]


def environment_table(checks: list[Check]) -> Table:
    """The checks as a table; what is missing comes with what to do about it."""
    table = Table("", "what", "found", title="Your computer", title_justify="left")
    for check in checks:
        mark = "[green]ok[/]" if check.fine else "[bold red]NO[/]"
        table.add_row(mark, check.what, check.found + (f"\n{check.advice}" if not check.fine else ""))
    return table


def _python() -> Check:
    version = platform.python_version_tuple()
    fine = tuple(map(int, version[:2])) >= (3, 11)
    return Check("Python", platform.python_version(), fine, "Python 3.11 or newer is needed")


def _packages() -> Check:
    names = ("torch", "transformers", "jupyterlab")
    found = {name: _version(name) for name in names}
    missing = [name for name, version in found.items() if version is None]
    listing = ", ".join(f"{name} {version or 'missing'}" for name, version in found.items())
    return Check("packages", listing, not missing, "run: make lab")


def _version(package: str) -> str | None:
    try:
        return installed(package)
    except ModuleNotFoundError:
        return None


def _weights() -> Check:
    trouble = problems(EMBEDDED)
    found = trouble[0] if trouble else EMBEDDED.name
    return Check("weights", found, not trouble, "run: specdec-lab models fetch")


def _memory() -> Check:
    available = _available_memory()
    if available is None:
        return Check("free memory", "unknown on this system", True)
    advice = "the model needs about 2 GB; close something"
    return Check("free memory", f"{available / 1e9:.1f} GB", available > 2e9, advice)


def _available_memory() -> int | None:
    sysconf: Callable[[str], int] | None = getattr(os, "sysconf", None)
    if sysconf is None:
        return None
    try:
        return sysconf("SC_AVPHYS_PAGES") * sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _device() -> Check:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    threads = "" if device.type == "cuda" else f", {torch.get_num_threads()} threads"
    return Check("device", f"{device.type}: {hardware_name(device)}{threads}", True)
