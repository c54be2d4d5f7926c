"""PostgreSQL: the same collection on a server, where others can write to it and read it with SQL.

    pip install 'boltzhash[postgres]'
    export PGPASSWORD=...               # or a line in ~/.pgpass; not in the URL
    python postgresql.py postgresql://user@host/database

The server needs the extension pgvector (0.7 or newer). The URL may also be in BOLTZHASH_POSTGRES. The
collection is a schema called example_docstrings; the script leaves it there.
"""

import os
import sys

from boltzhash import ITQ, Collection
from boltzhash.corpus.docstrings import docstring_corpus
from boltzhash.errors import MissingExtraError, NoSuchCollectionError

url = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("BOLTZHASH_POSTGRES")
if url is None:
    sys.exit("which server? Give postgresql://user@host/database, or set BOLTZHASH_POSTGRES")
location = f"{url}#example_docstrings"

documents = docstring_corpus()[::5]
try:
    try:
        library = Collection.open(location)
        print(f"{library.location} is there already")
    except NoSuchCollectionError:
        library = Collection.create(location, ITQ().fit(d.text for d in documents))
        print(f"made {library.location}")
except (MissingExtraError, OSError) as error:  # no driver; no server, no access, no pgvector
    sys.exit(str(error))

with library:
    library.upsert(documents)  # so that it can be run twice
    stats = library.stats()
    print(f"{stats['documents']} documents, {stats['bits']} bits by {stats['method']}")
    print(library.search("wait for a thread to finish", k=3))
