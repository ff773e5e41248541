"""Tracing: a model's forward as a graph of functional calls, with the sizes of every value."""
