"""What a reference to a spec finds, and what it suggests where it finds nothing."""

import os
import threading

import pytest

from specs.base.errors import SpecError
from specs.language.load import load


def told(reference):
    with pytest.raises(SpecError) as caught:
        load(reference)
    return str(caught.value).splitlines()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_that_is_not_there_and_has_the_name_of_a_preset(here):
    (here / "gpt3.yaml").touch()
    for name in ("gpt2.yaml", "gpt2.yml"):
        assert told(name) == [
            "A model must be a preset, a file, a checkpoint or a hub repository",
            f"  value: '{name}'",
            "  The file does not exist; the preset is named gpt2.",
        ]


def test_a_byte_order_mark_is_skipped(here):
    (here / "a.yaml").write_bytes("extends: gpt2\nd_modle: 3\n".encode("utf-8-sig"))
    assert told("a.yaml")[0] == "a.yaml:2:1: d_modle: is not a known key"
    (here / "a.yaml").write_bytes("extends: gpt2\nname: a\n".encode("utf-8-sig"))
    assert load("a.yaml").name == "a"


@pytest.mark.timeout(30)
def test_a_pipe_that_nothing_writes_to_is_not_waited_for(here):
    os.mkfifo("pipe")
    assert told("pipe") == [
        "pipe: a pipe must have a writer",
        "  Pass the path of a YAML file.",
    ]
    assert (
        told("/dev/null")[0] == "/dev/null: a spec must be a file or a pipe, but this is a device or a socket"
    )


@pytest.mark.timeout(30)
def test_a_pipe_is_read_to_its_end():
    reading, writing = os.pipe()

    def write():
        for part in (b"extends: gpt2\n", b"name: piped\n"):
            os.write(writing, part)
        os.close(writing)

    writer = threading.Timer(0.2, write)
    writer.start()
    try:
        assert load(f"/dev/fd/{reading}").name == "piped"
    finally:
        writer.join()
        os.close(reading)
