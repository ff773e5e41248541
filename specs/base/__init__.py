"""Base classes of specs: models, slots of kinds, roles of fields, and errors."""
