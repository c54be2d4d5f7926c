"""Everything that imports torch: how a network learns."""

from boltzhash.errors import needs_extra

try:
    import torch as _torch  # noqa: F401  # said here, so that no module of this room need say it
except ImportError:
    raise needs_extra("fit", "torch", "train") from None
