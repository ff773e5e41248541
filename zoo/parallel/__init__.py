"""Models on several processes: how they are cut, and cutting them."""
