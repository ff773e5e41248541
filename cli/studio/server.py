"""The studio's server: the page, and the answers to what it asks."""

from __future__ import annotations

import asyncio
import gc
import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from cli.studio.answer import Answers, Question
from cli.studio.dropped import MOST_HEAD, head_fields, opened_head
from cli.studio.guard import Guard, TooLargeError
from cli.studio.jobs import Job
from cli.studio.opened_spec import OpenedSpec
from cli.studio.page_files import page_file
from cli.studio.requests import BadRequestError, Fields
from cli.studio.works import Work, Works
from specs.base.errors import SpecError, UserError, with_flags
from specs.language.catalog import presets
from zoo.core.collector import collector_paused
from zoo.training.task_names import SYNTHETIC

_LINES = "application/x-ndjson"

_SENDING = 0.02
"""The most seconds that garbage waits for an answer to be sent."""


class Studio:
    """The application, and what it keeps between requests."""

    def __init__(self, first: OpenedSpec, folder: Path, port: int, token: str | None = None) -> None:
        self.first, self.folder, self.port = first, folder, port
        self.token = token or secrets.token_urlsafe(24)
        self.nonce = secrets.token_urlsafe(16)
        self.answers = Answers(folder)
        self.job = Job()
        self.works = Works(first, folder, self.answers)
        self._asked = False
        self._worker = ThreadPoolExecutor(1, "answers")
        self._helper = ThreadPoolExecutor(1, "edits")  # an edit does not wait for figures
        self._slow = ThreadPoolExecutor(1, "files")  # nor for the hub, or a large model on a mesh
        routes = [
            Route("/", self._page),
            Route("/page/{name}", self._file),
            Route("/api/start", self._start),
            Route("/api/schema", self._schema),
            Route("/api/answer", self._answer, methods=["POST"]),
            Route("/api/cancel", self._cancel, methods=["POST"]),
            Route("/api/gguf", self._gguf, methods=["POST"]),
            *(
                Route(f"/api/{name}", self._job(name, checked), methods=["POST"])
                for name, checked in self.works.jobs().items()
            ),
            *(
                Route(f"/api/{name}", self._quick(work, self._helper), methods=["POST"])
                for name, work in self.works.edits().items()
            ),
            *(
                Route(f"/api/{name}", self._quick(work, self._slow), methods=["POST"])
                for name, work in self.works.slow().items()
            ),
        ]
        self.app = Guard(Starlette(routes=routes), self.token, port, self.nonce, {"/api/gguf": MOST_HEAD})

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def warm_up(self) -> None:
        """Answer the page's first question ahead, while the browser opens: torch is loaded, and the figures are kept."""
        first = Question(
            self.first.text, self.first.preset, "" if self.first.preset else self.first.text, 1, None, "fp16"
        )
        self._worker.submit(lambda: list(self.answers.parts(first, lambda: not self._asked)))
        self._worker.submit(
            self.answers.readings.start
        )  # which takes a processor until it has loaded torch, too

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
                "weights": list(self.works.weights),
                "folder": str(self.folder),
                "presets": listed,
                "targets": {name: list(target.unsupported_precisions) for name, target in TARGETS.items()},
                "layouts": list(LAYOUTS),
                "precisions": choices_of("precision"),
                "devices": device_names(),
                "tasks": list(SYNTHETIC),
                "head": MOST_HEAD,
            }
        )

    async def _schema(self, request: Request) -> Response:
        from specs.files.stored_schema import spec_schema

        return JSONResponse(await asyncio.get_running_loop().run_in_executor(self._helper, spec_schema))

    async def _answer(self, request: Request) -> Response:
        """The parts of an answer, a line each.  It ends with the page's request, which the page's next question aborts."""
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
        self._asked = True

        def parts(is_wanted: Callable[[], bool]) -> Iterator[dict[str, Any]]:
            if is_wanted():
                for name, data in self.answers.parts(question, is_wanted):
                    yield {"part": name, "data": data}

        return StreamingResponse(_lines(_in_thread(self._worker, parts)), media_type=_LINES)

    def _quick(self, work: Work, worker: ThreadPoolExecutor) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                return await _told(worker, work, await _fields(request))
            except BadRequestError as error:
                return _refused(error)

        return endpoint

    async def _gguf(self, request: Request) -> Response:
        """Open the head of a GGUF file, which is the body; its size and name are in the query."""
        try:
            size, name = head_fields(request.query_params)
            head = await request.body()
        except ValueError:
            return _refused(BadRequestError("A GGUF file has a size and a name."))
        except TooLargeError:
            return _refused(BadRequestError("Too large", 413))
        except ClientDisconnect:
            return _refused(BadRequestError("Gone"))
        return await _told(self._slow, lambda head: self.works.opened(opened_head(head, size, name)), head)

    def _job(self, name: str, checked: Work) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                asked = await _fields(request)
                work = {"text": asked.text("text"), "folder": str(self.folder), **checked(asked)}
            except BadRequestError as error:
                return _refused(error)
            except UserError as error:
                return JSONResponse({"error": with_flags(error.text)}, 422)
            return StreamingResponse(_lines(self.job.events(name, work)), media_type=_LINES)

        return endpoint

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


async def _told(worker: ThreadPoolExecutor, work: Callable[[Any], dict[str, Any]], asked: Any) -> Response:
    """The response to some work in a thread: its data, or its refusal in words."""
    try:
        return JSONResponse(await asyncio.get_running_loop().run_in_executor(worker, work, asked))
    except SpecError as error:
        return JSONResponse(
            {"error": "\n".join(with_flags(problem.render()) for problem in error.problems[:3])}, 422
        )
    except UserError as error:
        return JSONResponse({"error": with_flags(error.text)}, 422)
    except OSError as error:
        return JSONResponse({"error": f"{error.filename}: {error.strerror}"}, 422)


def _refused(error: BadRequestError) -> Response:
    return JSONResponse({"error": str(error)}, error.status)


async def _lines(events: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    async for event in events:
        yield (json.dumps(event, separators=(",", ":")) + "\n").encode()


async def _in_thread(
    worker: ThreadPoolExecutor, make: Callable[[Callable[[], bool]], Iterator[dict[str, Any]]]
) -> AsyncGenerator[dict[str, Any], None]:
    """The items of an iterator that runs in a thread, as they come; ``make`` is told whether someone still wants them."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    ended = Event()

    def run() -> None:
        with collector_paused():
            try:
                for item in make(lambda: not ended.is_set()):
                    loop.call_soon_threadsafe(queue.put_nowait, item)
            except Exception as error:  # a fault of ours must not leave the page waiting
                fault = {"message": f"The figures cannot be computed: {type(error).__name__}: {error}"}
                loop.call_soon_threadsafe(queue.put_nowait, {"part": "fault", "data": fault})
            finally:
                loop.call_soon_threadsafe(queue.put_nowait, None)
                ended.wait(_SENDING)
                gc.collect(0)  # while the page draws: it stops all threads, so the last item is sent first

    worker.submit(run)
    try:
        while (item := await queue.get()) is not None:
            yield item
    finally:
        ended.set()
