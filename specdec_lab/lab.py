"""What notebooks call besides the library: results that are kept, a way past what is unsolved."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from specdec_lab.checks.harness import Check
from specdec_lab.files import replacing
from specdec_lab.language_model import CausalLM
from specdec_lab.provenance import provenance
from specdec_lab.small import sized, small

__all__ = ["CountPasses", "experiment", "filled", "sized", "small", "yours_or_reference"]


RESULTS = "results"
BEFORE = ".before.json"
"""How the file of the measurement before the last one ends."""
NOT_ASKED = float("nan")
"""For experiments without a prediction."""


def yours_or_reference(check: Check) -> Callable[..., Any]:
    """The notebook's own function if it is there and passes its check, else the library's; says which.

    The function is looked up by the check's name, so that even a cell with a syntax error, which
    defines nothing, stops nothing that comes later.
    """
    yours = vars(sys.modules["__main__"]).get(check.name)
    if yours is not None and check.passes(yours):
        return yours
    what = "is not defined" if yours is None else "does not pass its check yet"
    print(f"`{check.name}` {what}, so the library's own is used here.")
    assert check.reference is not None, f"{check.name} has no reference"
    return check.reference


def experiment(
    name: str,
    target: CausalLM | None,
    measure: Callable[[], dict[str, Any]],
    predicted: object = NOT_ASKED,
) -> dict[str, Any]:
    """Measure, and keep the result in ``results/NAME.json`` beside the notebook.

    The one that was there before is kept, too, in ``results/NAME.before.json``.

    Under grading the result that was handed in is shown again instead: a measurement made elsewhere
    would be another one.

    Args:
        name: of the file.
        target: the model that is measured, for the record.
        measure: makes a dict that JSON can hold.
        predicted: a guess, a number or more, that has to be there (not None) before anything is
            measured.

    Returns:
        The result; empty while the prediction is missing.
    """
    file = Path(RESULTS) / f"{name}.json"
    if small() and file.is_file():
        kept = _read(file)
        if kept:
            print(f"The measurement that was handed in, of {kept['provenance']['date']}.")
            return kept
    if predicted is None and not small():
        print("Make your prediction first, in the cell above; then run this one.")
        return {}
    guess = {} if predicted is NOT_ASKED else {"predicted": predicted}
    result = measure() | guess | {"provenance": provenance(target, None)}
    if not small():
        _write(file, result)
    return result


def filled(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """An answer of several entries; None while one of them is missing."""
    return None if None in [*answer.values()] else answer


class CountPasses:
    """Stands for a model and counts its forward passes; the model forgets what it has read."""

    def __init__(self, model: CausalLM) -> None:
        model.reset()
        self._model = model
        self.passes = 0

    def extend(self, tokens: Sequence[int], rows: int | None = None) -> Tensor:
        """As the model's own; one more pass."""
        self.passes += 1
        return self._model.extend(tokens, rows)

    def rewind(self, length: int) -> None:
        """As the model's own."""
        self._model.rewind(length)

    def rewind_to_match(self, prefix: Sequence[int]) -> list[int]:
        """As the model's own."""
        return self._model.rewind_to_match(prefix)

    def reset(self) -> None:
        """As the model's own; what was counted stays."""
        self._model.reset()

    @property
    def length(self) -> int:
        """As the model's own."""
        return self._model.length


def _read(file: Path) -> dict[str, Any]:
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return kept if isinstance(kept["provenance"]["date"], str) else {}
    except (ValueError, KeyError, TypeError, OSError):
        print(f"{file} cannot be read, so this is measured anew.")
        return {}


def _write(file: Path, result: dict[str, Any]) -> None:
    with replacing(file) as part:
        part.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        if file.is_file():  # only now that there is another to take its place
            file.replace(file.with_suffix(BEFORE))
