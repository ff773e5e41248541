"""``zoo draw``: what is written where, and what is refused."""

import pytest

from cli.options.files import ENDINGS
from tests.cli.program import as_json, done, invoke, refused

pytestmark = pytest.mark.usefixtures("empty_directory")


def files(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def test_a_drawing_is_an_svg_in_the_build_directory(tmp_path):
    assert "\nbuild/mine.svg is drawn in " in done("draw", "tiny-gpt", "--set", "name=mine")
    assert files(tmp_path) == ["build/mine.svg"]
    assert "<title>mine</title>" in (tmp_path / "build/mine.svg").read_text("utf-8")


def test_the_suffix_sets_the_format(tmp_path):
    for name in ("a.svg", "a.PNG", "a.mmd", "a.md", "deep/er/a.svg"):
        result = invoke("draw", "tiny-gpt", "-o", name)
        assert (result.exit_code, f"\n{name} is drawn in " in result.stdout) == (0, True)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "deep/er/a.svg").read_bytes()
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
    flowchart = (tmp_path / "a.mmd").read_text("utf-8")
    assert flowchart.startswith('---\ntitle: "tiny-gpt: 224K parameters"\n')
    assert (tmp_path / "a.md").read_text("utf-8") == (
        f"```mermaid\n{flowchart.removesuffix(ENDINGS['.mmd'].decode())}```\n<!-- written by zoo -->\n"
    )


@pytest.mark.slow
def test_the_format_is_required_where_the_file_name_has_none(tmp_path):
    assert invoke("draw", "tiny-gpt", "--format", "mermaid", "-o", "-").stdout.startswith("---\ntitle:")
    assert invoke("draw", "tiny-gpt", "-o", "-").stdout.startswith("<svg ")
    assert invoke("draw", "tiny-gpt", "--format", "png", "-o", "-").stdout_bytes.startswith(b"\x89PNG")
    assert files(tmp_path) == []
    assert "\nbuild/tiny-gpt.png is drawn in " in invoke("draw", "tiny-gpt", "--format", "png").stdout
    assert (
        "\npicture is drawn in " in invoke("draw", "tiny-gpt", "--format", "mermaid", "-o", "picture").stdout
    )


def test_json_is_the_scene_and_writes_only_requested_files(tmp_path):
    data = as_json("draw", "tiny-gpt")
    assert (data["title"], data["parameters"]) == ("tiny-gpt", 223616)
    assert files(tmp_path) == []
    assert as_json("draw", "tiny-gpt", "-o", "a.mmd") == data
    assert files(tmp_path) == ["a.mmd"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "a.gif"], "a.gif has no known format.\n  Use a suffix of .svg, .png, .mmd, .md, or pass --format.\n"),
        (
            ["-o", "a.png", "--format", "svg"],
            "a.png has the suffix of png, but --format is svg.\n  Drop --format, or rename the file.\n",
        ),
        (["--format", "pgn"], "--format 'pgn' is unknown\n  Did you mean 'png'?\n"),
        (
            ["-o", "there.svg"],
            "there.svg is a directory, and only regular files are replaced.\n"
            "  Pass a file to --output, such as there.svg/report.svg.\n",
        ),
        (["-o", "notes/a.svg"], "Cannot write notes/a.svg: notes is a file.\n  Pass another --output.\n"),
    ],
)  # fmt: skip
def test_an_unwritable_path_is_reported(tmp_path, arguments, message):
    (tmp_path / "there.svg").mkdir()
    (tmp_path / "notes").touch()
    result = invoke("draw", "tiny-gpt", *arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message)
    assert files(tmp_path) == ["notes"]


def test_a_png_is_not_sent_to_a_terminal(monkeypatch):
    monkeypatch.setattr("cli.commands.draw.is_terminal", lambda: True)
    message = refused("draw", "tiny-gpt", "--format", "png", "-o", "-")
    assert (
        message == "A PNG cannot be printed to a terminal.\n  Pass --output FILE, or redirect the output.\n"
    )


def test_a_scale_that_makes_too_large_a_picture_is_refused(tmp_path):
    message = refused("draw", "gpt2", "-o", "a.png", "--scale", "16", "--set", "name=" + "n" * 200)
    assert "pixels, more than 200,000,000" in message
    assert files(tmp_path) == []
    assert "should be greater than or equal to 0.1" in invoke("draw", "gpt2", "--scale", "0").stderr
