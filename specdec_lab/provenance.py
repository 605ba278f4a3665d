"""Where numbers come from: every result carries this, so that it can be read for what it is."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from specdec_lab import __version__

if TYPE_CHECKING:
    from specdec_lab.drafters import Drafter
    from specdec_lab.language_model import CausalLM

Kind = Literal["measured", "simulated", "theory", "cited"]


def provenance(
    target: CausalLM | None,
    drafter: Drafter | None,
    *,
    simulated: bool = False,
    seed: int | None = None,
) -> dict[str, Any]:
    """How a run was made: its kind, the models, the hardware, the versions, the seed and the time.

    ``kind`` is "measured" for a run of real models and "simulated" for anything scripted.
    """
    kind: Kind = "simulated" if simulated else "measured"
    device = getattr(target, "device", torch.device("cpu"))
    return {
        "kind": kind,
        "target": _name(target),
        "drafter": drafter.name if drafter is not None else None,
        "draft_model": _name(getattr(drafter, "model", None)),
        "device": str(device),
        "hardware": hardware_name(device),
        "threads": torch.get_num_threads(),
        "dtype": str(getattr(target, "dtype", torch.float64)).removeprefix("torch."),
        "versions": {
            "specdec_lab": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": installed("transformers"),
        },
        "seed": seed,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def installed(package: str) -> str:
    """The installed version of a package."""
    return version(package)


@cache
def hardware_name(device: torch.device) -> str:
    """The name of the GPU or CPU, as far as the system tells."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as cpuinfo:
            names = [line.partition(":")[2] for line in cpuinfo if line.startswith("model name")]
    except OSError:
        names = []
    return names[0].strip() if names else platform.processor() or platform.machine()


def _name(model: Any) -> str | None:
    if model is None:
        return None
    return str(getattr(model, "name", type(model).__name__))
