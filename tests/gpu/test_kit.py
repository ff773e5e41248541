"""The kit for GPU machines: wheels are cut, put together, and refused where a part is missing or damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu.kit import SITE, SUMS, WHEELS, KitError, cut, digest, install, join, main

NAMES = ["one-1.0-py3-none-any.whl", "two-1.0-py3-none-any.whl"]


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A kit of two files, one of them in three parts, as it is carried."""
    wheels = tmp_path / WHEELS
    wheels.mkdir()
    sums = ""
    for name, content in zip(NAMES, (bytes(range(250)), b"small"), strict=True):
        (wheels / name).write_bytes(content)
        sums += f"{digest(wheels / name)}  {name}\n"
        list(cut(wheels / name, tmp_path, 100))
    (tmp_path / SUMS).write_text(sums)
    wheels.rmdir()
    return tmp_path


def test_parts_become_the_wheels_again(kit: Path) -> None:
    assert [part.stat().st_size for part in sorted(kit.glob(f"{NAMES[0]}.*"))] == [100, 100, 50]
    assert [wheel.read_bytes() for wheel in join(kit)] == [bytes(range(250)), b"small"]


def test_wheels_that_are_together_need_no_parts(kit: Path) -> None:
    join(kit)
    for part in kit.glob("*.whl.*"):
        part.unlink()
    assert [wheel.name for wheel in join(kit)] == NAMES


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_missing_or_damaged_part_is_refused(kit: Path, damage: str) -> None:
    part = kit / f"{NAMES[0]}.001"
    part.unlink() if damage == "missing" else part.write_bytes(b"x" * 100)
    with pytest.raises(KitError, match="parts do not have the recorded digest"):
        join(kit)
    assert not (kit / WHEELS / NAMES[0]).exists()
    assert not (kit / SITE).exists()


def test_a_directory_without_a_kit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", str(tmp_path)]) == 2
    assert "is not a kit (no SHA256SUMS)" in capsys.readouterr().err


def test_what_is_installed_is_not_installed_again(kit: Path) -> None:
    site = kit / SITE
    site.mkdir()
    (site / SUMS).write_text((kit / SUMS).read_text())
    assert install(kit) == site  # these files are no wheels: pip would refuse them
