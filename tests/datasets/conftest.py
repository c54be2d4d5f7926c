"""Archives as the tests of the loaders write them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

WriteTar = Callable[..., Path]


@pytest.fixture
def write_tar(tmp_path: Path) -> WriteTar:
    """Writes ``x.tar.gz`` with these files, and members without contents after them."""

    def write(files: dict[str, bytes], extra: Sequence[tarfile.TarInfo] = ()) -> Path:
        path = tmp_path / "x.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name, contents in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(contents)
                archive.addfile(member, io.BytesIO(contents))
            for member in extra:
                archive.addfile(member)
        return path

    return write
