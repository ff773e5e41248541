"""The spec language: from files, presets and assignments to validated models."""
