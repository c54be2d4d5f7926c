"""Which GPUs torch sees."""

from __future__ import annotations

import torch


def gpu_names() -> list[str]:
    """Those that a fit could use, by the names of their makers; it takes the first.

    >>> len(gpu_names()) == torch.cuda.device_count()
    True
    """
    return [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
