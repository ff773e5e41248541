"""Components broken on purpose, to see that what looks for such mistakes finds them."""

from __future__ import annotations

from typing import Any

import pytest

from zoo import functional


def windows_see_the_future(patch: pytest.MonkeyPatch) -> None:
    """Attention with a window, in whatever stack, sees tokens on either side."""
    whole = functional.attention_bias

    def leaking(*args: Any, causal: bool, window: int | None = None, **limits: Any) -> Any:
        return whole(*args, causal=causal and window is None, window=window, **limits)

    patch.setattr(functional, "attention_bias", leaking)
