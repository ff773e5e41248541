"""This machine: its memory and bandwidth."""
