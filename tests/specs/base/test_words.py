"""Numbers and sizes as words."""

from specs.base.words import number_text


def test_numbers_have_no_superfluous_digits() -> None:
    assert [number_text(each) for each in (50.0, 0.0625, 500_000, 1e12)] == [
        "50",
        "0.0625",
        "500,000",
        "1e+12",
    ]
