import numpy as np
from numpy.typing import NDArray

def sparse_linear(
    values: NDArray[np.float64],
    columns: NDArray[np.int32],
    ends: NDArray[np.int64],  # one more than rows
    weight: NDArray[np.float32],  # (n_inputs, n_outputs)
    bias: NDArray[np.float32],
    out: NDArray[np.float64],  # (n_rows, n_outputs)
    rectified: bool,
    /,
) -> None: ...
def dense_linear(
    rows: NDArray[np.float64],  # (n_rows, n_inputs)
    weight: NDArray[np.float32],  # (n_inputs, n_outputs)
    bias: NDArray[np.float32],
    out: NDArray[np.float64],  # (n_rows, n_outputs)
    rectified: bool,
    /,
) -> None: ...
