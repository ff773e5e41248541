"""What every runner does: it reads requests from standard input, a line of JSON each, and answers each with one line.

Tensors are in files beside the lines, one after another, without headers: the lines say their names, dtypes and shapes. This file
needs only the standard library and numpy. What the engine itself prints goes to standard error.
"""

import json
import os
import re
import sys

import numpy as np

WORDS = 2000
"""How much of an engine's error is passed on, in characters."""


def array_of(stated, data):
    """An array of a file's bytes; bfloat16 is passed as float32."""
    dtype, shape, offset = np.dtype(stated["dtype"]), stated["shape"], stated["offset"]
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(data, dtype, count, offset).reshape(shape).copy()


def stated_arrays(arrays, path):
    """Write arrays to a file, and return what is said of them."""
    stated, offset = [], 0
    with open(path, "wb") as file:
        for name, array in arrays.items():
            plain = np.asarray(array, order="C")
            if plain.dtype.kind not in "biuf":  # such as ml_dtypes' bfloat16
                plain = plain.astype(np.float32)
            file.write(plain.tobytes())
            stated.append({"name": name, "dtype": plain.dtype.str, "shape": [*plain.shape], "offset": offset})
            offset += plain.nbytes
    return stated


def serve(engine):
    """Answer requests until standard input ends.

    ``engine`` has ``start(options) -> {"version": ...}``, and either ``load(name, path, options)`` and ``run(name, feeds)``, or
    ``compile(path, options)``; ``node`` is a pattern that finds the name of a node in its errors. ``start`` may also say what the
    engine ``lacks`` on this machine, such as float16, and ``aside`` names what it did not run of what it was given.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = _answer(engine, request)
        except Exception as error:  # engines' errors have no common class
            words = str(error).strip()[:WORDS] or type(error).__name__
            found = re.search(getattr(engine, "node", r"(?!)"), words)
            answer = {"refused": words, "node": next(filter(None, found.groups()), "") if found else ""}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


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
    feeds = {stated["name"]: array_of(stated, data) for stated in request["tensors"]}
    outputs = engine.run(request["graph"], feeds)
    aside = getattr(engine, "aside", "")
    return {"tensors": stated_arrays(outputs, request["answer"]), **({"aside": aside} if aside else {})}
