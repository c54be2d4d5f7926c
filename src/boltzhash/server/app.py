"""The service as an ASGI application."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from boltzhash.collection import FilterWarning
from boltzhash.server import refusals
from boltzhash.server.guard import Guard
from boltzhash.server.pages import pages
from boltzhash.server.routes import api, operations
from boltzhash.server.service import Service
from boltzhash.server.settings import Settings
from boltzhash.version import __version__

_DESCRIPTION = (
    "Search a collection of documents by their words and by short binary codes. Every answer "
    "names the `generation` of the collection for which it is true. Errors are JSON: `error.message` "
    "says what to change, and `error.code` is for programs. An id that is an integer beyond 2^53, which "
    'JavaScript would round, is written `{"int64": "9007199254740993"}`, and may be sent so or as a '
    "number."
)


def create_app(settings: Settings) -> FastAPI:
    """The service over one collection."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # So that the first request does not wait for the model. If there is none, or it cannot be read,
        # requests are told so: a worker that ended here would leave connections unanswered.
        with suppress(refusals.RefusedError):
            await service.read(len)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FilterWarning)  # clients find it in their answers
            yield
        service.close()

    app = FastAPI(
        title="boltzhash",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,  # these load scripts from elsewhere; pages.py has one that does not
        redoc_url=None,
        redirect_slashes=False,  # to an absolute address, which is wrong behind a proxy
        lifespan=lifespan,
        exception_handlers={
            refusals.RefusedError: refusals.answer_refusal,
            HTTPException: refusals.answer_http_error,
            RequestValidationError: refusals.answer_invalid,
            Exception: refusals.answer_bug,
        },
    )
    app.state.service = service
    app.include_router(api)
    app.include_router(operations)
    app.include_router(pages)
    app.add_middleware(Guard, settings=settings, metrics=service.metrics)
    return app


def app_of_worker() -> FastAPI:
    """Make the service of a worker process, whose settings are in the environment."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    return create_app(Settings.from_environment())


def _end_with_parent(parent: int) -> None:
    """A parent that was killed cannot end its workers, and they would keep the port."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
