"""Codes on disk: what is written is read, and what is damaged is refused."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash.codes import Codes
from boltzhash.errors import DuplicateIdError, ModelError
from boltzhash.storage import codes as codes_module
from boltzhash.storage.codes import FORMAT_VERSION, SeenDigests, read_codes, write_codes

MODEL = "fingerprint of a model"
FILES = ["codes.npy", "config.json", "ids.jsonl", "no_known_word.npy"]


def some_codes(n: int, n_bits: int = 16) -> Codes:
    return np.random.default_rng(n).integers(0, 256, (n, n_bits // 8), dtype=np.uint8)


def ones(n: int) -> Any:
    return np.ones(n, dtype=np.int64)


def write(folder: Path, n: int = 5, **changes: Any) -> Path:
    settings = {"n_bits": 16, "model": MODEL, **changes}
    with write_codes(folder, **settings) as writer:
        writer.append(some_codes(n), list(range(n)), ones(n))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "codes")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def change_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


# Round trip


def test_what_is_appended_block_by_block_is_read_as_a_whole(tmp_path: Path) -> None:
    codes = some_codes(10)
    known = np.array([0, 3, 1, 0, 2, 2, 1, 1, 0, 5])
    with write_codes(tmp_path / "codes", n_bits=16, model=MODEL) as writer:
        writer.append(codes[:4], ["a", "b", "c", "d"], known[:4])
        writer.append(codes[4:4], [], known[4:4])
        writer.append(codes[4:], [4, 5, 6, 7, 8, 9], known[4:])
    stored = read_codes(tmp_path / "codes", model=MODEL)
    np.testing.assert_array_equal(stored.codes, codes)
    assert stored.codes.dtype == np.uint8
    assert stored.ids == ["a", "b", "c", "d", 4, 5, 6, 7, 8, 9]
    assert stored.no_known_word.tolist() == [0, 3, 8]
    assert stored.no_known_word.dtype == np.int64
    assert (writer.n_documents, writer.no_known_word) == (10, [0, 3, 8])
    assert sorted(contents(tmp_path / "codes")) == FILES


def test_codes_are_mapped_and_not_read(tmp_path: Path) -> None:
    assert isinstance(read_codes(write(tmp_path / "codes"), model=MODEL).codes, np.memmap)


def test_ids_of_every_kind(tmp_path: Path) -> None:
    ids: list[str | int] = [
        *("plain", 0, -7, 10**30, "7", "", " blank ", "tab\tnewline\nreturn\r", '"quoted"\\'),
        *("Straße 日本 🦊", "separators \u2028\u2029\x85\x0b\x0c\x1c", "e\u0301", "null", "true"),
    ]
    with write_codes(tmp_path / "codes", n_bits=8, model=MODEL) as writer:
        writer.append(some_codes(len(ids), 8), ids, ones(len(ids)))
    stored = read_codes(tmp_path / "codes", model=MODEL)
    assert stored.ids == ids
    assert [type(i) for i in stored.ids] == [type(i) for i in ids]


def test_config_says_what_the_codes_are(tmp_path: Path) -> None:
    write(tmp_path / "codes", 5)
    assert json.loads((tmp_path / "codes" / "config.json").read_text()) == {
        "format": "boltzhash codes",
        "format_version": FORMAT_VERSION,
        "n_bits": 16,
        "n_documents": 5,
        "model": MODEL,
    }


@pytest.mark.parametrize("n_bits", [8, 64, 4096])
@pytest.mark.parametrize("n", [0, 1, 9, 10, 100, 1000])
def test_codes_npy_is_what_numpy_would_have_written(tmp_path: Path, n: int, n_bits: int) -> None:
    codes = some_codes(n, n_bits)
    with write_codes(tmp_path / "codes", n_bits=n_bits, model=MODEL) as writer:
        for start in range(0, n, 300):
            block = codes[start : start + 300]
            writer.append(block, list(range(start, start + len(block))), ones(len(block)))
    expected = io.BytesIO()
    np.save(expected, codes)
    assert (tmp_path / "codes" / "codes.npy").read_bytes() == expected.getvalue()
    mapped = np.load(tmp_path / "codes" / "codes.npy", mmap_mode="r")
    np.testing.assert_array_equal(mapped, codes, strict=True)
    stored = read_codes(tmp_path / "codes", model=MODEL)
    assert (stored.codes.shape, len(stored.ids)) == ((n, n_bits // 8), n)


def test_codes_that_are_not_contiguous_are_written_row_by_row(tmp_path: Path) -> None:
    codes = np.asfortranarray(some_codes(6))
    with write_codes(tmp_path / "codes", n_bits=16, model=MODEL) as writer:
        writer.append(codes, list(range(6)), ones(6))
    np.testing.assert_array_equal(read_codes(tmp_path / "codes", model=MODEL).codes, codes)


def test_a_folder_is_replaced_whole(tmp_path: Path) -> None:
    write(tmp_path / "codes", 5)
    (tmp_path / "codes" / "left over").touch()
    write(tmp_path / "codes", 3)
    assert len(read_codes(tmp_path / "codes", model=MODEL).ids) == 3
    assert sorted(contents(tmp_path / "codes")) == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["codes"]


# What the writer refuses


@pytest.mark.parametrize(
    "wrong", [np.zeros((2, 16), dtype=bool), np.zeros((2, 2), dtype=np.int64)], ids=["bits", "int"]
)
def test_only_packed_codes_are_written(tmp_path: Path, wrong: Any) -> None:
    with (
        pytest.raises(TypeError, match="codes must be packed"),
        write_codes(tmp_path / "codes", n_bits=16, model=MODEL) as writer,
    ):
        writer.append(wrong, [0, 1], ones(2))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("codes", "ids", "known"),
    [
        (some_codes(2, 24), [0, 1], ones(2)),
        (some_codes(2), [0], ones(2)),
        (some_codes(2), [0, 1, 2], ones(2)),
        (some_codes(2), [0, 1], ones(3)),
    ],
    ids=["wider codes", "an id too few", "an id too many", "a count too many"],
)
def test_a_block_that_does_not_fit_is_refused_when_it_comes(
    tmp_path: Path, codes: Codes, ids: list[str | int], known: Any
) -> None:
    """Not when the codes are read, a day of encoding later."""
    with (
        pytest.raises(ValueError, match=r"\d"),
        write_codes(tmp_path / "codes", n_bits=16, model=MODEL) as writer,
    ):
        writer.append(codes, ids, known)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt])
def test_nothing_is_left_after_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    with (
        pytest.raises(error),
        write_codes(tmp_path / "codes", n_bits=16, model=MODEL) as writer,
    ):
        writer.append(some_codes(2), [0, 1], ones(2))
        raise error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_codes_that_were_there(
    tmp_path: Path, error: type[BaseException]
) -> None:
    before = contents(write(tmp_path / "codes"))
    with (
        pytest.raises(error),
        write_codes(tmp_path / "codes", n_bits=16, model="another") as writer,
    ):
        writer.append(some_codes(2), [0, 1], ones(2))
        raise error
    assert contents(tmp_path / "codes") == before
    assert [path.name for path in tmp_path.iterdir()] == ["codes"]


def test_the_codes_that_were_there_can_be_read_until_the_new_ones_are_whole(
    tmp_path: Path,
) -> None:
    write(tmp_path / "codes", 5)
    with write_codes(tmp_path / "codes", n_bits=16, model=MODEL) as writer:
        writer.append(some_codes(2), [0, 1], ones(2))
        assert len(read_codes(tmp_path / "codes", model=MODEL).ids) == 5
    assert len(read_codes(tmp_path / "codes", model=MODEL).ids) == 2


# What the reader refuses


def refusal(folder: Path, model: str = MODEL) -> str:
    with pytest.raises(ModelError) as raised:
        read_codes(folder, model=model)
    return str(raised.value)


def test_codes_of_another_model(folder: Path) -> None:
    assert refusal(folder, model="another") == (
        f"{folder} was encoded by another model: encode the corpus again with this one"
    )


def test_codes_of_a_newer_format(folder: Path) -> None:
    change_config(folder, format_version=FORMAT_VERSION + 1)
    assert refusal(folder) == (
        f"{folder} has format version {FORMAT_VERSION + 1}, this boltzhash reads "
        f"{FORMAT_VERSION}: make it again"
    )


def test_a_folder_of_something_else(folder: Path) -> None:
    change_config(folder, format="boltzhash model")
    assert refusal(folder) == f"{folder} holds a 'boltzhash model'; expected a 'boltzhash codes'"


def test_a_folder_of_nothing(tmp_path: Path) -> None:
    message = f"{tmp_path} is not a boltzhash codes folder: config.json is missing"
    assert refusal(tmp_path) == message


def test_no_folder(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert refusal(gone) == f"{gone} is not a folder; expected a boltzhash codes folder"


@pytest.mark.parametrize("config", ["", "{", "[]", "null", "{}", '{"format": "boltzhash codes"}'])
def test_a_config_that_is_none(folder: Path, config: str) -> None:
    (folder / "config.json").write_text(config)
    assert refusal(folder).startswith(f"{folder / 'config.json'} is damaged or not ours: ")


@pytest.mark.parametrize("name", ["codes.npy", "no_known_word.npy"])
@pytest.mark.parametrize("kept", [0, 3, 9, 60, 128, -1])
def test_a_truncated_array(tmp_path: Path, name: str, kept: int) -> None:
    with write_codes(tmp_path / "codes", n_bits=16, model=MODEL) as writer:
        writer.append(some_codes(5), list(range(5)), np.zeros(5, dtype=np.int64))
    path = tmp_path / "codes" / name
    path.write_bytes(path.read_bytes()[:kept])
    assert refusal(tmp_path / "codes").startswith(f"{tmp_path / 'codes'} is damaged: ")


@pytest.mark.parametrize("name", ["codes.npy", "ids.jsonl", "no_known_word.npy"])
def test_a_missing_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    message = refusal(folder)
    assert message.startswith(f"{folder} is damaged: ")
    assert name in message


def damage_ids(change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        lines = (folder / "ids.jsonl").read_text().splitlines(keepends=True)
        (folder / "ids.jsonl").write_text("".join(change(lines)))

    return damage


def save_codes(codes: Any) -> Callable[[Path], None]:
    return lambda folder: np.save(folder / "codes.npy", codes)


@pytest.mark.parametrize(
    ("damage", "came"),
    [
        (damage_ids(lambda lines: lines[:-1]), "got (5, 2) uint8 and 4 ids"),
        (damage_ids(lambda lines: [*lines, "5\n"]), "got (5, 2) uint8 and 6 ids"),
        (save_codes(some_codes(4)), "got (4, 2) uint8 and 5 ids"),
        (save_codes(some_codes(5, 24)), "got (5, 3) uint8 and 5 ids"),
        (save_codes(np.zeros((5, 2), np.int8)), "got (5, 2) int8 and 5 ids"),
        (lambda folder: change_config(folder, n_documents=4), "expected 4 codes of 2 bytes"),
        (lambda folder: change_config(folder, n_bits=8), "expected 5 codes of 1 bytes"),
    ],
    ids=["an id less", "an id more", "a code less", "wider", "dtype", "n_documents", "n_bits"],
)
def test_files_that_do_not_belong_together(
    folder: Path, damage: Callable[[Path], None], came: str
) -> None:
    damage(folder)
    message = refusal(folder)
    assert message.startswith(f"{folder} is damaged: expected ")
    assert came in message


@pytest.mark.parametrize("n_bits", [None, "16", [16]])
def test_a_number_of_bits_that_is_no_number(folder: Path, n_bits: object) -> None:
    change_config(folder, n_bits=n_bits)
    assert str(folder) in refusal(folder)


@pytest.mark.parametrize("line", ["", "{", "nul"])
def test_an_id_that_is_no_json(folder: Path, line: str) -> None:
    damage_ids(lambda lines: [*lines[:-1], line + "\n"])(folder)
    assert refusal(folder).startswith(f"{folder} is damaged: ")


def test_nothing_is_unpickled(folder: Path) -> None:
    np.save(folder / "codes.npy", np.array([object], dtype=object), allow_pickle=True)
    assert refusal(folder).startswith(f"{folder} is damaged: ")


# Ids that come twice


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("place", [0, 1, 63, 149])
def test_an_id_that_comes_again_is_found_wherever_it_was(
    tmp_path: Path, size: int, place: int
) -> None:
    """However the ids are cut into blocks: they are 0 to 149, then ``place`` once more."""
    ids = [*range(150), place]
    with (
        pytest.raises(
            DuplicateIdError, match=f"the id {place} is there twice: documents {place} and"
        ),
        write_codes(tmp_path / "codes", n_bits=16, model=MODEL) as writer,
    ):
        for start in range(0, len(ids), size):
            block = ids[start : start + size]
            writer.append(some_codes(len(block)), block, None)
    assert list(tmp_path.iterdir()) == []


def test_an_integer_is_not_the_string_of_its_digits(tmp_path: Path) -> None:
    with write_codes(tmp_path / "codes", n_bits=16, model=MODEL) as writer:
        writer.append(some_codes(2), [7, "7"], None)


def test_two_ids_may_share_a_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Weak:
        def __init__(self, content: bytes, digest_size: int) -> None:
            self.size = digest_size

        def digest(self) -> bytes:
            return bytes(self.size)

    monkeypatch.setattr(codes_module, "blake2b", Weak)
    with write_codes(tmp_path / "codes", n_bits=16, model=MODEL) as writer:
        for start in range(0, 10, 2):
            writer.append(some_codes(2), [start, start + 1], None)
    assert read_codes(tmp_path / "codes", model=MODEL).ids == list(range(10))


def test_what_is_kept_of_ids_does_not_take_more_than_its_digests() -> None:
    seen = SeenDigests()
    for start in range(0, 5000, 50):
        assert len(seen.add([str(n) for n in range(start, start + 50)])) == 0
    assert sum(run.nbytes for run in seen._runs) == 8 * 5000
    assert len(seen._runs) < 10
