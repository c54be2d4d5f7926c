"""A client of the service: start `boltzhash serve`, add, search and delete over HTTP, stop it.

    pip install 'boltzhash[serve]'
    python service_client.py

The client needs nothing but the standard library, so it is easily written in another language.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from typing import Any

from boltzhash import ITQ, Collection
from boltzhash.corpus.docstrings import docstring_corpus

KEY = "choose-a-long-one"  # writing needs it


def ask(path: str, body: dict[str, Any]) -> Any:
    """What the service answers to a JSON body."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(address + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


folder = tempfile.mkdtemp(prefix="boltzhash-")
documents = docstring_corpus()[::5]
with Collection.create(folder, ITQ().fit(document.text for document in documents)) as library:
    library.add(documents)

command = [sys.executable, "-m", "boltzhash", "serve", folder, "--port", "0"]  # 0: any free one
environment = {**os.environ, "BOLTZHASH_API_KEY": KEY}
with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as service:
    try:
        assert service.stderr is not None
        announced = re.search(r"http://[^/]+", service.stderr.readline())
        address = announced.group() if announced else sys.exit("the service did not start")
        mine = {"id": "mine", "text": "Sort a list of numbers, the smallest first."}
        print("added:", ask("/v1/documents", {"documents": [mine]}))
        for hit in ask("/v1/search", {"text": "sort a list", "k": 5})["hits"]:
            print(f"{hit['score']:>6.2f}  {hit['id']}")
        print("deleted:", ask("/v1/documents/delete", {"ids": ["mine"]}))
    finally:
        service.terminate()
print("the service ended with", service.returncode)
