"""Speculative decoding, exact and measured: the reference library beneath the course.

    >>> from specdec_lab import load_pair
    >>> pair = load_pair("embedded")                        # doctest: +SKIP
    >>> pair.generate("The capital of France is").text      # doctest: +SKIP

Names are loaded when they are first used, so that ``import specdec_lab`` is quick: torch and
transformers take seconds to import.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "distributions": ["acceptance_probability", "alpha", "residual", "total_variation"],
    "randomness": ["Chooser", "SeededChooser"],
    "enumeration": ["Enumeration", "Misconduct", "enumerate_outcomes"],
    "records": ["Draft", "Generation", "Metrics", "Position", "Round", "measure"],
    "sampling": ["Sampling"],
    "stopping": ["StopRule"],
    "text": ["Transcript"],
    "language_model": ["CannotRewind", "CausalLM", "HFCausalLM", "RandomLM", "TableLM"],
    "cache_check": ["CheckedLM"],
    "drafters": [
        "CorruptedDrafter",
        "Drafter",
        "LayerSkipDrafter",
        "ModelDrafter",
        "NGramDrafter",
        "ScriptedDrafter",
    ],
    "verification": ["verify_by_sampling", "verify_greedily"],
    "decoding": ["autoregressive", "generate", "speculative", "stepwise"],
    "batch": ["generate_batch", "speculative_batch"],
    "adaptive": ["AdaptiveGamma", "Costs", "measure_costs"],
    "pretrained": ["Pair", "load_pair"],
    "audit": [
        "audit_decoder",
        "audit_gallery",
        "audit_positions",
        "audit_samples",
        "audit_step",
        "audit_transformers_assisted",
        "output_law",
        "target_law",
    ],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = ["__version__", *sorted(_MODULE_OF)]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
