"""The config.json of Hugging Face checkpoints: read as specs, and written from them."""
