"""The protocol of runners: requests on standard input, one line of JSON each, and one line of answer for each.

Tensors are in files, one after another, without headers: the lines give their names, dtypes, shapes and offsets. This file needs
only the standard library and numpy. The engine's own output goes to standard error.
"""

import json
import os
import re
import sys

import numpy as np

WORDS = 2000
"""The number of characters of an engine's error to pass on."""


def array_of(tensor, data):
    """An array from a file's bytes; bfloat16 is passed as float32."""
    dtype, shape, offset = np.dtype(tensor["dtype"]), tensor["shape"], tensor["offset"]
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(data, dtype, count, offset).reshape(shape).copy()


def stated_arrays(arrays, path):
    """Write arrays to a file, and return the name, dtype, shape and offset of each."""
    tensors, offset = [], 0
    with open(path, "wb") as file:
        for name, array in arrays.items():
            plain = np.asarray(array, order="C")
            if plain.dtype.kind not in "biuf":  # such as ml_dtypes' bfloat16
                plain = plain.astype(np.float32)
            file.write(plain.tobytes())
            tensors.append(
                {"name": name, "dtype": plain.dtype.str, "shape": [*plain.shape], "offset": offset}
            )
            offset += plain.nbytes
    return tensors


def serve(engine):
    """Answer requests until standard input ends.

    ``engine`` has ``start(options) -> {"version": ...}``, and either ``load(name, path, options)`` and ``run(name, feeds)``, or
    ``compile(path, options)``; ``node`` is a pattern that finds the name of a node in its errors. ``start`` may also list the
    features that the engine ``lacks`` on this machine, such as float16; ``aside`` names the parts that it did not run.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = _answer(engine, request)
        except Exception as error:  # errors of engines have no common class
            words = str(error).strip()[:WORDS] or type(error).__name__
            match = re.search(getattr(engine, "node", r"(?!)"), words)
            answer = {"refused": words, "node": next(filter(None, match.groups()), "") if match else ""}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    os._exit(0)  # threads of an engine may wait for each other for ever at exit


def _answer(engine, request):
    doing = request["do"]
    if doing == "start":
        return engine.start(request["options"])
    if doing == "load":
        engine.load(request["graph"], request["path"], request["options"])
        return {}
    if doing == "compile":
        return engine.compile(request["path"], request["options"])
    with open(request["file"], "rb") as file:
        data = file.read()
    feeds = {tensor["name"]: array_of(tensor, data) for tensor in request["tensors"]}
    outputs = engine.run(request["graph"], feeds)
    aside = getattr(engine, "aside", "")
    return {"tensors": stated_arrays(outputs, request["answer"]), **({"aside": aside} if aside else {})}
