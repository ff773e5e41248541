"""A model's forward as a graph of functional calls with the sizes of every value: for exporting, costing, checking."""
