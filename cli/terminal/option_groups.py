"""The groups of options in help, and the options that have other names now."""

from __future__ import annotations

MODEL = "Model"
INPUTS = "Inputs"
RUNS = "Where it runs"
PRECISION = "Precision"
TASK = "Task"
SIZES = "Sizes"
ACTION = "Action"
SEARCH = "Search"
OUTPUT = "Output"

DECODING = "Decoding"
SCORES = "Scores"
TRAINING = "Training"
GRAPHS = "Graphs"
CACHE = "KV cache"
INT4 = "int4 only"
QUALITY = "Quality"
MAPS = "Choice of maps"
MACHINE = "Machine"
TREE = "Tables"
RANDOM = "Random weights"

FIRST = (MODEL, INPUTS, RUNS, PRECISION, TASK, SIZES, ACTION, SEARCH, OUTPUT)
"""The groups that ``--help`` shows, in order.  Options that name no group are of :data:`OUTPUT`."""

DETAILS = (RANDOM, DECODING, SCORES, TRAINING, GRAPHS, CACHE, INT4, QUALITY, MAPS, MACHINE, TREE)
"""The groups that only ``--help-all`` shows, where the help of a command takes more than :data:`SCREEN` lines."""

SCREEN = 38
"""The lines up to which ``--help`` shows all."""

RENAMED = {
    ("bench", "--against"): "--baselines",
    ("bench", "--batch"): "--batches",
    ("bench", "--length"): "--lengths",
    ("bench", "--past"): "--pasts",
    ("bench", "--precision"): "--precisions",
    ("bench", "--target"): "--targets",
    ("compare", "--fresh"): "--force",
    ("compare", "--layers"): "--num-layers",
    ("compare", "--length"): "--task-length",
    ("compare", "--text"): "--corpus",
    ("diff", "--brief"): "--quiet",
    ("eval", "--layers"): "--per-layer",
    ("eval", "--text"): "--data",
    ("push", "--overwrite"): "--force",
}
"""The present name of each option that had another, by command."""
