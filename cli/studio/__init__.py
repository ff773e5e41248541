"""``zoo studio``: a local page on which a spec is edited and its figures follow."""
