"""Files are written whole or not at all."""

import pytest

from specdec_lab.files import replacing


def test_a_file_is_replaced_once_all_is_written(tmp_path):
    file = tmp_path / "new folder" / "marks.csv"
    for text in ("first", "second"):
        with replacing(file) as part:
            part.write_text(text)
            assert not file.exists() or file.read_text() != text
        assert file.read_text() == text
    assert list(file.parent.iterdir()) == [file]


def test_after_an_error_the_file_is_as_it_was(tmp_path):
    file = tmp_path / "marks.csv"
    file.write_text("old")
    with pytest.raises(TypeError), replacing(file) as part:
        part.write_bytes("half")
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_text() == "old"
