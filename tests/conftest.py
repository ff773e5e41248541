"""Settings of all tests."""

from hypothesis import Phase, settings

# A draw that fails is shown as it was drawn: to shrink one that builds and exports models takes minutes.
settings.register_profile("as drawn", parent=settings(), phases=(Phase.explicit, Phase.reuse, Phase.generate))
settings.load_profile("as drawn")
