"""``python -m boltzhash`` is the ``boltzhash`` command."""

import sys

from boltzhash.cli import main

sys.exit(main())
