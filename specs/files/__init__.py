"""Other files of users: `zoo.yaml`, devices, and the JSON Schema."""
