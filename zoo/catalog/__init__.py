"""The catalog of many exports, and the changes since the last one."""
