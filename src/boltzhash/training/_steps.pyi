import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int32]
Sizes = tuple[int, int, int, int, int]  # documents, draws, bits, rank, networks
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
def take_rows(
    words: Integers,
    amounts: Floats,
    ends: Integers,  # one more than rows
    rows: NDArray[np.int64],  # which are taken
    words_taken: Integers,  # what is filled; as many as these rows have
    amounts_taken: Floats,
    ends_taken: Integers,
    /,
) -> None: ...
def mix_rows(
    words: Integers,  # rising in each row
    amounts: Floats,
    ends: Integers,  # one more than rows
    rows: NDArray[np.int64],
    others: NDArray[np.int64],  # as many
    share: float,  # that these have
    words_mixed: Integers,  # what is filled, as far as the last of the ends; room for all of both
    amounts_mixed: Floats,
    ends_mixed: Integers,
    /,
) -> None: ...
def by_word(
    words: Integers,
    amounts: Floats,
    ends: Integers,  # one more than rows
    rows: Integers,  # what is filled: of each word, the rows that have it
    amounts_of_rows: Floats,
    ends_of_words: Integers,  # one more than words
    /,
) -> None: ...
def decodes() -> bool: ...
def kept_of_decoding(n_documents: int, n_words: int, /) -> int: ...
def decode_bits(
    documents: Integers,
    amounts: Floats,
    ends: Integers,  # one more than words
    codes: Floats,  # (n_documents, n_bits of all groups)
    kept: Floats,  # as many as kept_of_decoding says
    weight: Floats,  # (n_bits of all groups, n_words)
    bias: Floats,
    values: Floats,
    by_codes: Floats,  # as codes, those of this group are filled
    first: int,
    n_bits: int,
    with_by_codes: bool,
    threads: int,
    /,
) -> None: ...
def decode_bits_backward(
    documents: Integers,
    amounts: Floats,
    ends: Integers,
    codes: Floats,
    kept: Floats,
    each: Floats,  # the derivative by the values
    by_weight: Floats,  # as weight, those of this group are filled
    by_bias: Floats,
    first: int,
    n_bits: int,
    threads: int,
    /,
) -> None: ...
def multiplies() -> bool: ...
def multiply(
    a: Floats,  # from its first number to its last, as are b and out
    b: Floats,
    start: Floats,  # (groups, columns), added to each row, or empty
    out: Floats,  # filled, for (groups, rows, columns)
    sizes: tuple[int, ...],  # groups, rows, terms, columns
    a_strides: tuple[int, ...],  # of groups, rows, terms
    b_strides: tuple[int, ...],  # of groups, terms, columns
    out_strides: tuple[int, ...],  # of groups, rows
    threads: int,
    /,
) -> None: ...
def draw_random(out: Floats, seed: int, are_normal: bool, threads: int, /) -> None: ...
def dropped_relu(
    x: Floats,
    out: Floats,
    seed: int,
    threshold: int,
    scale: float,
    threads: int,
    /,
) -> None: ...
def dropped_words(
    weight: Floats,  # (n_words, n_outputs)
    bias: Floats,
    words: Integers,
    amounts: Floats,
    ends: Integers,  # one more than documents
    out: Floats,  # (n_documents, n_outputs), filled
    seed: int,
    threshold: int,
    scale: float,
    threads: int,
    /,
) -> None: ...
def dropped_relu_backward(
    out: Floats, gradient: Floats, by_x: Floats, scale: float, threads: int, /
) -> None: ...
def kept_of_sampling(documents: int, draws: int, bits: int, rank: int, networks: int, /) -> int: ...
def sampled_codes(
    outputs: Floats,  # (documents, bits (2 + rank)): of each network locations, deviations, couplings
    normals: Floats,  # (documents, draws (bits + rank) + bits)
    uniforms: Floats,  # (documents, 2 bits)
    kept: Floats,  # as many as kept_of_sampling says
    locations: Floats,  # (documents, bits), filled, as is all that follows
    noisy: Floats,
    divergences: Floats,  # (documents,)
    is_on: NDArray[np.bool_],
    sizes: Sizes,
    noise: float,
    threads: int,
    /,
) -> None: ...
def sampled_codes_backward(
    outputs: Floats,
    normals: Floats,
    kept: Floats,
    by_noisy: Floats,
    by_divergences: Floats,
    by_locations: Floats,
    by_outputs: Floats,  # filled
    sizes: Sizes,
    scale: float,
    threads: int,
    /,
) -> None: ...
