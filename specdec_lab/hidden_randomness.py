"""Finding randomness that a program draws behind its chooser's back.

Two ways, because neither sees everything. ``GlobalTwins`` is cheap and is asked after every run: it
notices any use of the global generators of torch, numpy and Python. ``watched`` is slow and is used
for a few runs: it also sees private generators, and where in the program they are used.
"""

from __future__ import annotations

import contextlib
import random
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

_TORCH = str(Path(torch.__file__).parent)
_HERE = Path(__file__).parent
_PYTHON = ("__init__", "seed", "random", "getrandbits")
_NUMPY = ("default_rng", "RandomState", "Generator", "PCG64", "MT19937", "Philox", "SFC64")
_NOTED: list[tuple[Any, str, str]] = [
    *((random.Random, name, f"random.Random.{name}") for name in _PYTHON),
    *((np.random, name, f"numpy.random.{name}") for name in _NUMPY),
    (random, "SystemRandom", "random.SystemRandom"),
]


class GlobalTwins:
    """A twin of each global generator, in the same state: they part when the program draws or seeds.

    Each comparison draws one number from the generator and its twin; ``restore`` puts the generators
    back to where they were at the beginning.
    """

    def __init__(self) -> None:
        self._torch_start = torch.get_rng_state()
        self._numpy_start = np.random.get_state()
        self._python_start = random.getstate()
        self._torch = torch.Generator("cpu")
        self._numpy = np.random.RandomState()
        self._python = random.Random()
        self.restore()

    def restore(self) -> None:
        """Put generators and twins into the state that was found."""
        torch.set_rng_state(self._torch_start)
        np.random.set_state(self._numpy_start)
        random.setstate(self._python_start)
        self._torch.set_state(self._torch_start)
        self._numpy.set_state(self._numpy_start)
        self._python.setstate(self._python_start)

    def used(self) -> list[str]:
        """The generators that were drawn from or seeded since the last comparison."""
        pairs: dict[str, tuple[float, float]] = {
            "torch": (_cpu_uniform(None), _cpu_uniform(self._torch)),
            "numpy": (np.random.random_sample(), self._numpy.random_sample()),
            "Python": (random.random(), self._python.random()),
        }
        return [name for name, (drawn, expected) in pairs.items() if drawn != expected]


def _cpu_uniform(generator: torch.Generator | None) -> float:
    """On the CPU, whatever the default device is."""
    return torch.rand((), generator=generator, device="cpu").item()


@contextlib.contextmanager
def watched() -> Iterator[list[str]]:
    """Note what torch and ``random.Random`` draw, on any generator, and every new generator of numpy.

    Yields:
        A list that fills with what was called and where, such as ``"torch's rand in decoder.py:12"``.
    """
    found: list[str] = []
    with contextlib.ExitStack() as stack:
        for owner, name, title in _NOTED:
            noted = _noted(getattr(owner, name), title, found)
            stack.enter_context(mock.patch.object(owner, name, noted))
        stack.enter_context(_WatchTorch(found))
        yield found


class _WatchTorch(TorchFunctionMode):
    """Sees every torch function, and whether a generator was moved by it or handed over to it."""

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self._found = found

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        before = _torch_states()
        result = func(*args, **options)
        # Attention and dropout may be random and mostly are not: only a moved generator tells. One
        # that is handed over is private, and handed over for no other reason than to be drawn from.
        private = any(isinstance(value, torch.Generator) for value in (*args, *options.values()))
        if private or _torch_states() != before:
            self._found.append(f"torch's {getattr(func, '__name__', 'function')} in {_caller()}")
        return result


def _torch_states() -> list[bytes]:
    """The states of torch's global generators."""
    states = [torch.get_rng_state()]
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states += torch.cuda.get_rng_state_all()
    return [state.numpy().tobytes() for state in states]


def _noted(maker: Any, title: str, found: list[str]) -> Any:
    """``maker``, which notes that it was called; a class stays a class, for whoever names it as one."""

    def note() -> None:
        found.append(f"{title} in {_caller()}")

    if isinstance(maker, type):

        class Noted(maker):  # type: ignore[misc]
            def __init__(self, *args: Any, **options: Any) -> None:
                note()
                super().__init__(*args, **options)

        return Noted

    def make(*args: Any, **options: Any) -> Any:
        note()
        return maker(*args, **options)

    return make


def _caller() -> str:
    """The innermost line of the program itself: not of torch, ``random`` or this library."""
    for frame in reversed(traceback.extract_stack()):
        file = frame.filename
        if Path(file).parent != _HERE and file != random.__file__ and not file.startswith(_TORCH):
            return f"{Path(file).name}:{frame.lineno}"
    return "an unknown place"
