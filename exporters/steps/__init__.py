"""The steps of an export, from its options to the published directory."""
