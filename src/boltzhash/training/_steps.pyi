import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int32]
Numbers = tuple[float, float, float, float, float, float]  # rate, root, 1 − β₁, β₂, 1 − β₂, ε

def adam_dense(
    weight: Floats,
    mean: Floats,
    square: Floats,
    gradient: Floats,
    numbers: Numbers,
    threads: int,
    /,
) -> None: ...
def adam_of_words(
    weight: Floats,  # (n_words, n_outputs)
    mean: Floats,
    square: Floats,
    by_output: Floats,  # (n_documents, n_outputs)
    documents: Integers,
    amounts: Floats,
    ends: Integers,  # one more than words
    numbers: Numbers,
    threads: int,
    /,
) -> None: ...
def decode(
    logits: Floats,  # (n_documents, n_words) without the bias; then the derivative by them
    bias: Floats,
    words: Integers,
    amounts: Floats,
    ends: Integers,  # one more than documents
    values: Floats,
    by_bias: Floats,  # (2, n_words), to be added up
    threads: int,
    /,
) -> None: ...
def dropped_relu(
    x: Floats,
    chances: NDArray[np.int64],
    out: Floats,
    threshold: int,
    scale: float,
    threads: int,
    /,
) -> None: ...
def dropped_relu_backward(
    out: Floats, gradient: Floats, by_x: Floats, scale: float, threads: int, /
) -> None: ...
