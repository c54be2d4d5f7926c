"""Requests made up from the OpenAPI description: none may fail, and all answers must be as described."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CHECKS = ",".join(
    (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
    )
)


@pytest.mark.fuzz
@pytest.mark.parametrize("with_key", [True, False])
def test_no_request_that_fits_the_description_fails(
    serve: Callable[..., Any], folder: Path, tmp_path: Path, with_key: bool
) -> None:
    """The seed is a new one each time, and printed, unless ``BOLTZHASH_FUZZ_SEED`` names it."""
    examples = os.environ.get("BOLTZHASH_FUZZ_EXAMPLES", "100")
    seed = os.environ.get("BOLTZHASH_FUZZ_SEED")
    with serve(folder) as service:
        key = ["-H", "Authorization: Bearer a-key-for-tests"] if with_key else []
        result = subprocess.run(
            [
                *(Path(sys.executable).with_name("schemathesis"), "run"),
                *(f"{service.address}/openapi.json", *key, "--checks", CHECKS),
                *("--max-examples", examples, "--no-color", "--generation-database", "none"),
                *(("--seed", seed) if seed else ()),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        # A request of megabytes stands on one line, and would be all that is seen of the report.
        report = "\n".join(line[:300] for line in result.stdout.splitlines())
        assert result.returncode == 0, report[-6000:]
        assert service.client.get("/readyz").status_code == 200
        assert "Traceback" not in service.log.read_text()
