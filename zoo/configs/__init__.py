"""The configs of published checkpoints."""
