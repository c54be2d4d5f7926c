"""``python -m boltzhash`` is the ``boltzhash`` command."""

import sys

from boltzhash.cli.parser import main

sys.exit(main())
