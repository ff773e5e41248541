"""The studio's server: the page, and the answers to what it asks."""

from __future__ import annotations

import asyncio
import gc
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from cli.studio.answer import Answers, Question
from cli.studio.controls import changed, stepped
from cli.studio.guard import Guard, TooLargeError
from cli.studio.jobs import ExportJob
from cli.studio.opened_spec import OpenedSpec, imported, opened_below
from cli.studio.page_files import page_file
from cli.studio.requests import BadRequestError, Fields
from cli.studio.saved_spec import command_of, saved
from specs.base.errors import SpecError, UserError, with_flags
from specs.language.catalog import presets
from specs.language.editing import without

_LINES = "application/x-ndjson"


class Studio:
    """The application, and what it keeps between requests."""

    def __init__(self, first: OpenedSpec, folder: Path, port: int, token: str | None = None) -> None:
        self.first, self.folder, self.port = first, folder, port
        self.token = token or secrets.token_urlsafe(24)
        self.nonce = secrets.token_urlsafe(16)
        self.answers = Answers(folder)
        self.job = ExportJob(folder)
        self._latest = 0
        self._worker = ThreadPoolExecutor(1, "answers")
        self._helper = ThreadPoolExecutor(1, "edits")  # an edit does not wait for figures
        routes = [
            Route("/", self._page),
            Route("/page/{name}", self._file),
            Route("/api/start", self._start),
            Route("/api/schema", self._schema),
            Route("/api/answer", self._answer, methods=["POST"]),
            Route("/api/cancel", self._cancel, methods=["POST"]),
            Route("/api/export", self._export, methods=["POST"]),
            *(
                Route(f"/api/{name}", self._quick(work), methods=["POST"])
                for name, work in self._works().items()
            ),
        ]
        self.app = Guard(Starlette(routes=routes), self.token, port, self.nonce)

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def warm_up(self) -> None:
        """Answer the page's first question ahead, while the browser opens: torch is loaded, and the figures are kept."""
        first = Question(
            self.first.text, self.first.preset, "" if self.first.preset else self.first.text, 1, None, "fp16"
        )
        self._worker.submit(lambda: list(self.answers.parts(first, lambda: not self._latest)))

    async def _page(self, request: Request) -> Response:
        return page_file("index.html", self.nonce)

    async def _file(self, request: Request) -> Response:
        return page_file(request.path_params["name"], self.nonce)

    async def _start(self, request: Request) -> Response:
        from exporters.layouts import LAYOUTS
        from exporters.target.targets import TARGETS
        from specs.files.device import device_names
        from specs.files.export_options import choices_of

        listed = [
            [preset.name, preset.summary, preset.parameters, preset.year, preset.architecture]
            for preset in presets()
        ]
        return JSONResponse(
            {
                "opened": self.first.as_dict(),
                "folder": str(self.folder),
                "presets": listed,
                "targets": {name: list(target.unsupported_precisions) for name, target in TARGETS.items()},
                "layouts": list(LAYOUTS),
                "precisions": choices_of("precision"),
                "devices": device_names(),
            }
        )

    async def _schema(self, request: Request) -> Response:
        from specs.files.stored_schema import spec_schema

        return JSONResponse(await asyncio.get_running_loop().run_in_executor(self._helper, spec_schema))

    async def _answer(self, request: Request) -> Response:
        """The parts of an answer, a line each.  A later question ends it."""
        try:
            fields = await _fields(request)
            question = Question(
                fields.text("text"),
                fields.text("base", ""),
                fields.text("base_text", ""),
                fields.whole("batch", 1, 1, 1_000_000),
                fields.whole("length", None, 1, 2**30),
                fields.text("precision", "fp16"),
            )
        except BadRequestError as error:
            return _refused(error)
        self._latest += 1
        mine = self._latest

        def is_current() -> bool:
            return self._latest == mine

        def parts() -> Iterator[dict[str, Any]]:
            if is_current():
                for name, data in self.answers.parts(question, is_current):
                    yield {"part": name, "data": data}

        return StreamingResponse(_lines(_in_thread(self._worker, parts), is_current), media_type=_LINES)

    def _works(self) -> dict[str, Callable[[Fields], dict[str, Any]]]:
        """The requests that are answered at once."""
        folder = self.folder
        return {
            "set": lambda asked: {
                "text": changed(asked.text("text"), asked.path("path"), asked.plain("value"), folder)
            },
            "remove": lambda asked: {"text": without(asked.text("text"), asked.path("path"))},
            "step": lambda asked: {
                "text": stepped(
                    asked.text("text"),
                    asked.path("path"),
                    asked.number("value"),
                    asked.whole("direction", 1, -1, 1) or 1,
                    folder,
                )
            },
            "open": lambda asked: opened_below(asked.text("reference"), folder).as_dict(),
            "import": lambda asked: imported(asked.text("config")).as_dict(),
            "save": lambda asked: saved(
                asked.text("text"), asked.text("file"), folder, replace=asked.plain("replace") is True
            ),
            "command": lambda asked: {
                "command": command_of(asked.text("text"), asked.text("base", ""), folder)
            },
        }

    def _quick(self, work: Callable[[Fields], dict[str, Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                fields = await _fields(request)
                return JSONResponse(
                    await asyncio.get_running_loop().run_in_executor(self._helper, work, fields)
                )
            except BadRequestError as error:
                return _refused(error)
            except SpecError as error:
                return JSONResponse(
                    {"error": "\n".join(problem.render() for problem in error.problems[:3])}, 422
                )
            except UserError as error:
                return JSONResponse({"error": with_flags(error.text)}, 422)
            except OSError as error:
                return JSONResponse({"error": f"{error.filename}: {error.strerror}"}, 422)

        return endpoint

    async def _export(self, request: Request) -> Response:
        try:
            fields = await _fields(request)
            events = self.job.events(fields.text("text"), fields.mapping("options"))
        except BadRequestError as error:
            return _refused(error)
        return StreamingResponse(_lines(events), media_type=_LINES)

    async def _cancel(self, request: Request) -> Response:
        await self.job.cancel()
        return JSONResponse({})


async def _fields(request: Request) -> Fields:
    try:
        return Fields.of(await request.body())
    except TooLargeError:
        raise BadRequestError("Too large", 413) from None
    except ClientDisconnect:
        raise BadRequestError("Gone", 400) from None


def _refused(error: BadRequestError) -> Response:
    return JSONResponse({"error": str(error)}, error.status)


async def _lines(
    events: AsyncIterator[dict[str, Any]], is_current: Callable[[], bool] = lambda: True
) -> AsyncIterator[bytes]:
    async for event in events:
        if not is_current():
            break
        yield (json.dumps(event, separators=(",", ":")) + "\n").encode()


async def _in_thread(
    worker: ThreadPoolExecutor, make: Callable[[], Iterator[dict[str, Any]]]
) -> AsyncIterator[dict[str, Any]]:
    """The items of an iterator that runs in a thread, as they come."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def run() -> None:
        try:
            for item in make():
                loop.call_soon_threadsafe(queue.put_nowait, item)
        except Exception as error:  # a fault of ours must not leave the page waiting
            fault = {"message": f"The figures cannot be computed: {type(error).__name__}: {error}"}
            loop.call_soon_threadsafe(queue.put_nowait, {"part": "fault", "data": fault})
        finally:
            loop.call_soon_threadsafe(queue.put_nowait, None)
            gc.collect(0)  # while the page draws

    worker.submit(run)
    while (item := await queue.get()) is not None:
        yield item
