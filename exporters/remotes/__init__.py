"""Places where exports are published: repositories of the Hugging Face hub, OCI registries and directories."""
