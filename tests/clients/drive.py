"""Answer requests with the function ``answer`` of a script, in the environment of a client, until stdin ends.

Each request and each answer is a line of JSON. Everything that a client prints on stdout goes to stderr.
"""

import json
import os
import runpy
import sys

answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
answer = runpy.run_path(sys.argv[1])["answer"]
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
