"""What an experiment leaves behind: rows that say where they come from, on disk as they come.

A run that is interrupted keeps what it has measured; the same run again goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from specdec_lab.files import replacing

VERSION = 1
Row = dict[str, Any]

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["version", "experiment", "provenance", "settings", "rows"],
    "additionalProperties": False,
    "properties": {
        "version": {"const": VERSION},
        "experiment": {"type": "string"},
        "provenance": {
            "type": "object",
            "required": [
                "kind",
                "target",
                "device",
                "hardware",
                "threads",
                "dtype",
                "versions",
                "date",
            ],
            "properties": {
                "kind": {"enum": ["measured", "simulated", "theory"]},
                "threads": {"type": "integer", "minimum": 1},
                "versions": {"type": "object", "additionalProperties": {"type": "string"}},
                "seed": {"type": ["integer", "null"]},
                "date": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT"},
            },
        },
        "settings": {
            "type": "object",
            "required": ["keys"],
            "properties": {"keys": {"type": "array", "items": {"type": "string"}}},
        },
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["key", "kind"],
                "properties": {
                    "key": {"type": "string"},
                    "kind": {"enum": ["measured", "simulated", "theory"]},
                },
            },
        },
    },
}
"""JSON schema of a result's file. Each row says of itself whether it was measured."""


@dataclass
class Result:
    """An experiment's numbers.

    Args:
        experiment: its name, as in ``specdec-lab bench NAME``.
        provenance: how it was made (``specdec_lab.provenance``).
        settings: what decided what was measured; ``keys`` are those of all rows there will be.
        rows: one for each thing measured, with its ``key`` and its ``kind`` of number.
    """

    experiment: str
    provenance: dict[str, Any]
    settings: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    version: int = VERSION

    def of(self, **wanted: object) -> list[Row]:
        """The rows in which these names have these values."""
        return [
            row for row in self.rows if all(row.get(name) == value for name, value in wanted.items())
        ]

    @property
    def missing(self) -> list[str]:
        """The keys of the rows that are still to be measured."""
        done = {row["key"] for row in self.rows}
        return [key for key in self.settings.get("keys", ()) if key not in done]

    def save(self, file: Path) -> None:
        """Write it, whole or not at all."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as part:
            part.write_text(self._text(), encoding="utf-8")

    def _text(self) -> str:
        """JSON with a line for each row, so that a file can be read and its changes followed."""
        head = json.dumps(asdict(self) | {"rows": []}, indent=1)
        rows = ",\n".join(json.dumps(row) for row in self.rows)
        return head.replace('"rows": []', f'"rows": [\n{rows}\n ]') + "\n"

    @classmethod
    def load(cls, file: Path) -> Result:
        """Read it back.

        Raises:
            ValueError: if the file holds something else; names it.
        """
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            if stored["version"] != VERSION:
                raise ValueError(f"version {stored['version']}, expected {VERSION}")
            return cls(**stored)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{file}: got no result of an experiment ({error})") from error


def _rounded(value: Any) -> Any:
    """Floats to six digits: no clock here is better."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value


class Ledger:
    """A result that is kept on disk, row by row.

    Args:
        file: where; it is read if it is there.
        started: the result without rows, as a new run would begin it.

    Raises:
        ValueError: if the file was made with other settings, by another experiment or for other models:
            rows of two kinds do not mix, and nothing is overwritten.
    """

    def __init__(self, file: Path, started: Result) -> None:
        self.file = file
        self.result = started
        if file.exists():
            found = Result.load(file)
            for what, theirs, ours in _identity(found, started):
                if theirs != ours:
                    raise ValueError(
                        f"{file}: got a result with {what} {theirs!r}, expected {ours!r}: move it "
                        "away, or name another folder with --out"
                    )
            self.result = found

    @property
    def missing(self) -> list[str]:
        """The keys in ``settings["keys"]`` that have no row yet."""
        return self.result.missing

    def add(self, key: str, row: Mapping[str, Any], kind: str = "measured") -> None:
        """Keep a row, on disk too."""
        self.result.rows.append(_rounded({"key": key, "kind": kind, **row}))
        self.result.save(self.file)


def _identity(found: Result, ours: Result) -> list[tuple[str, Any, Any]]:
    """What two runs must have in common for their rows to be of one result."""
    of_provenance = ("target", "draft_model", "device", "hardware", "threads", "versions")
    return [
        ("experiment", found.experiment, ours.experiment),
        ("settings", found.settings, json.loads(json.dumps(ours.settings))),
        *((name, found.provenance.get(name), ours.provenance.get(name)) for name in of_provenance),
    ]


COMMITTED = Path(__file__).parents[2] / "benchmarks" / "results" / "full"
"""The measurement that comes with the course."""


def committed(experiment: str) -> Result:
    """The result of an experiment as it was measured for ``benchmarks/RESULTS.md``.

    Raises:
        ValueError: where it is not there, as in an installation without the course; names the file.
    """
    file = COMMITTED / f"{experiment}.json"
    if not file.is_file():
        raise ValueError(f"{file}: not found; the committed results come with the course's repository")
    return Result.load(file)
