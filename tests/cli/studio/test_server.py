"""The server answers its own page alone, and nothing that a request says is run or read elsewhere."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cli.studio import server
from cli.studio.guard import MAX_BODY
from cli.studio.page_files import page_names
from tests.cli.studio.conftest import PORT, Page, text_of


def test_the_page_and_all_its_files_are_served_with_a_strict_policy(page: Page) -> None:
    response = page.client.get(page.url(""))
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert f"'nonce-{page.studio.nonce}'" in policy
    assert f'content="{page.studio.nonce}"' in response.text
    assert "http://" not in response.text.replace("http://www.w3.org", "")
    for name in page_names():
        assert page.client.get(page.url(f"page/{name}")).status_code == 200, name


def test_the_token_is_needed_for_everything(page: Page) -> None:
    for path in (
        "/",
        "/api/start",
        "/page/main.js",
        "/wrong/api/start",
        f"/{page.studio.token[:-1]}/",
        "//api/start",
    ):
        response = page.client.get(path)
        assert response.status_code == 403, path
        assert page.studio.token not in response.text
    assert page.client.post("/api/answer", json={"text": ""}).status_code == 403


POSTS = (
    "answer", "cancel", "gguf", "export", "checkpoint", "training", "set", "remove", "step", "save", "command", "open",
    "import", "mesh", "measure",
)  # fmt: skip


def test_every_route_is_known_to_the_attacks(page: Page) -> None:
    routes = {route.path for route in page.studio.app.app.routes}  # type: ignore[attr-defined]
    assert routes == {
        *(f"/api/{name}" for name in (*POSTS, "start", "schema")),
        "/",
        "/page/{name}",
    }


@pytest.mark.parametrize("name", POSTS)
def test_every_route_refuses_other_hosts_origins_sites_and_a_wrong_token(page: Page, name: str) -> None:
    url, body = page.url(f"api/{name}"), {"text": text_of("tiny-gpt"), "reference": "gpt2"}
    for header, value in (
        ("host", "evil.example"), ("origin", "http://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site"),
    ):  # fmt: skip
        assert page.client.post(url, json=body, headers={header: value}).status_code == 403, header
    for path in (f"/api/{name}", f"/wrong/api/{name}", f"/{page.studio.token}x/api/{name}"):
        assert page.client.post(path, json=body).status_code == 403, path
    plain = {"content-type": "text/plain"}
    assert page.client.post(url, content="{}", headers=plain).status_code == 415
    huge = b"x" * (25_000_000 if name == "gguf" else MAX_BODY + 1)
    kind = "application/octet-stream" if name == "gguf" else "application/json"
    assert page.client.post(url, content=huge, headers={"content-type": kind}).status_code == 413
    assert page.client.get(url).status_code == 405


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8642", "127.0.0.1", "127.0.0.1:80", "localhost.evil.example:8642", ""],
)
def test_another_host_is_refused(page: Page, host: str) -> None:
    response = page.client.get(page.url("api/start"), headers={"host": host})
    assert response.status_code == 403
    assert response.text.startswith("Another host")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", f"https://127.0.0.1:{PORT}", "http://127.0.0.1:9999", "file://"]
)
def test_another_origin_is_refused(page: Page, origin: str) -> None:
    response = page.client.post(
        page.url("api/answer"), json={"text": text_of("tiny-gpt")}, headers={"origin": origin}
    )
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers


def test_another_site_is_refused_and_the_own_origin_is_not(page: Page) -> None:
    assert page.client.get(page.url("api/start"), headers={"sec-fetch-site": "cross-site"}).status_code == 403
    own = {"origin": f"http://127.0.0.1:{PORT}", "sec-fetch-site": "same-origin"}
    assert page.client.get(page.url("api/start"), headers=own).status_code == 200


def test_requests_are_json_of_a_bounded_size(page: Page) -> None:
    answer = page.url("api/answer")
    assert (
        page.client.post(answer, content="text=1", headers={"content-type": "text/plain"}).status_code == 415
    )
    json_type = {"content-type": "application/json"}
    for content in ("", "[", "[]", "5", "null", '{"text": 5}', "[" * 100_000):
        assert page.client.post(answer, content=content, headers=json_type).status_code == 400, content[:9]
    assert page.client.post(answer, content=b"x" * (MAX_BODY + 1), headers=json_type).status_code == 413
    chunks = (b"x" * 1_000_000 for _ in range(9))
    assert page.client.post(answer, content=chunks, headers=json_type).status_code == 413
    for field, value in (("batch", 0), ("batch", True), ("length", 1.5), ("length", 10**12), ("base", 3)):
        assert page.post("answer", text="", **{field: value}).status_code == 400, field


def test_a_huge_spec_is_refused_with_the_bound(page: Page) -> None:
    assert page.post("answer", text="a" * 1_000_001).status_code == 413
    values = page.answer(f"name: [{'a, ' * 200_000}]\n")["problems"]
    assert "values" in values[0]["message"]


def test_alias_bombs_and_deep_nesting_are_refused_quickly(page: Page) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
    )
    for text in (
        bomb,
        "a: " + "[" * 5_000,
        "a: &a {b: *a}\n",
        "<<: 1\n",
        "a: !!python/object/apply:os.system ['true']\n",
    ):
        began = time.process_time()
        parts = page.answer(text)
        assert list(parts) == ["problems"]
        assert time.process_time() - began < 5
        for name in ("set", "remove"):
            response = page.post(name, text=text, path=["a", "b"], value=1)
            assert response.status_code == 422, response.text


def test_paths_lead_nowhere_else(page: Page, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("extends: tiny-gpt\nname: secret\n")
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    for name in (
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/server.py",
        "server.py",
        "codemirror.js/..",
        "nothing.js",
    ):
        assert page.client.get(page.url(f"page/{name}")).status_code == 404, name
    for reference in (
        "/etc/passwd",
        "../secret.yaml",
        str(tmp_path / "secret.yaml"),
        "link.yaml",
        "a/../../x.yaml",
        "\0.yaml",
    ):
        response = page.post("open", reference=reference)
        assert response.status_code == 422, reference
        assert "secret" not in response.text.replace("secret.yaml", "")
        assert "root:" not in response.text
    for file in (
        "/etc/x.yaml",
        "../x.yaml",
        "x.txt",
        ".x.yaml",
        "a/../../x.yaml",
        "link.yaml",
        "x.yaml\0",
        "",
    ):
        response = page.post("save", text=text_of("tiny-gpt"), file=file, replace=True)
        assert response.status_code == 422, file
    assert (tmp_path / "secret.yaml").read_text() == "extends: tiny-gpt\nname: secret\n"


def test_html_in_names_is_escaped_wherever_it_is_markup(page: Page) -> None:
    text = text_of("tiny-gpt").replace("name: tiny-gpt", 'name: ok\nsummary: "<img src=x onerror=alert(1)>"')
    parts = page.answer(text, base="tiny-gpt")
    assert "<img" not in parts["drawing"]
    refused = page.answer(text_of("tiny-gpt").replace("name: tiny-gpt", "name: <b>bold</b>"))
    assert refused["problems"][0]["where"] == "name"
    named = "decoder: {layers: [{use: '<b>x</b>', repeat: 1}], blocks: {'<b>x</b>': {dropout: 0.5}}}\n"
    drawn = page.answer(f"extends: tiny-gpt\nname: a\n{named}", base="tiny-gpt")
    assert "<b>" not in drawn.get("drawing", "")


def test_controls_set_step_and_complete(page: Page) -> None:
    text = text_of("gpt2")
    rope = page.post("set", text=text, path=["position", "kind"], value="rope").json()["text"]
    assert "position: {kind: rope}" in rope
    grouped = page.post(
        "set", text=text, path=["decoder", "block", "attention", "kind"], value="grouped_query"
    ).json()["text"]
    assert "kv_heads" in grouped
    assert "counts" in page.answer(grouped, base="gpt2")
    stepped = page.post(
        "step", text=text, path=["decoder", "block", "attention", "heads"], value=12, direction=1
    ).json()["text"]
    assert "heads: 16" in stepped
    least = text.replace("layers: 12", "layers: 1")
    refused = page.post("step", text=least, path=["decoder", "layers"], value=1, direction=-1)
    assert refused.json()["text"] is None
    removed = page.post("remove", text=text, path=["embedding", "dropout"]).json()["text"]
    assert "embedding" not in removed


def test_specs_are_opened_imported_saved_and_turned_into_commands(page: Page, folder: Path) -> None:
    opened = page.post("open", reference="gpt2").json()
    assert (opened["preset"], opened["text"]) == ("gpt2", text_of("gpt2"))
    near = page.post("open", reference="gtp2")
    assert "gpt2" in near.json()["error"]
    config = json.dumps({"model_type": "gpt2", "n_embd": 768, "_name_or_path": "org/<b>mine"})
    imported = page.post("import", config=config).json()
    assert page.answer(imported["text"])["counts"]["parameters"] == 124_439_808
    assert page.post("import", config="{}").status_code == 422
    assert "not valid JSON" in page.post("import", config="{").json()["error"]
    text = text_of("gpt2").replace("kind: learned", "kind: rope")
    assert page.post("save", text=text, file="mine/gpt2.yaml").json() == {
        "exists": False,
        "file": "mine/gpt2.yaml",
    }
    assert (folder / "mine/gpt2.yaml").read_text() == text
    assert page.post("save", text=text_of("gpt2"), file="mine/gpt2.yaml").json()["exists"]
    assert (folder / "mine/gpt2.yaml").read_text() == text
    assert (
        page.post("save", text=text_of("gpt2"), file="mine/gpt2.yaml", replace=True).json()["exists"] is False
    )
    assert page.post("open", reference="mine/gpt2.yaml").json()["file"].endswith("mine/gpt2.yaml")
    assert page.post("save", text="name: [", file="x.yaml").status_code == 422


@pytest.mark.slow
def test_an_export_reports_its_progress_and_verification(page: Page, folder: Path) -> None:
    response = page.post("export", text=text_of("tiny-gpt"), precision="fp32", weights="random")
    events = [json.loads(line) for line in response.text.splitlines()]
    assert {event["event"] for event in events[:-1]} == {"progress"}
    done = events[-1]
    assert done["event"] == "done", done
    assert done["directory"] == "build/tiny-gpt"
    assert done["verification"]["passed"]
    assert done["verification"]["max_abs"] < 1e-4
    assert done["rounding"] == ""
    assert (folder / "build/tiny-gpt/model.onnx").is_file()
    rounded = json.loads(
        page.post("export", text=text_of("tiny-gpt"), precision="int4").text.splitlines()[-1]
    )
    assert "int4 rounding (the files, against the original weights): " in rounded["rounding"]
    assert "of top tokens agree; outputs differ by up to " in rounded["rounding"]


def test_weights_are_those_of_opened_checkpoints_alone(page: Page, tmp_path: Path) -> None:
    text = text_of("tiny-gpt")
    for work in ("export", "checkpoint"):
        for weights in ("/etc/passwd", "org/model", str(tmp_path), "../x", "", 5):
            assert page.post(work, text=text, directory="x", weights=weights).status_code == 400, weights
    assert page.post("checkpoint", text=text, directory="x", weights="none").status_code == 400
    for option, value in (("target", 5), ("precision", []), ("layout", {})):
        assert page.post("export", text=text, **{option: value}).status_code == 400
    assert page.post("cancel").json() == {}


@pytest.mark.slow
@pytest.mark.parametrize("option", [{"target": "nothing"}, {"precision": "fp7"}, {"layout": "../x"}])
def test_an_export_with_an_unknown_option_is_refused(page: Page, option: dict[str, str]) -> None:
    event = json.loads(page.post("export", text=text_of("tiny-gpt"), **option).text)
    assert event["event"] == "failed"
    assert next(iter(option.values())) in event["message"]


def test_fields_of_paths_are_checked(page: Page) -> None:
    text = text_of("tiny-gpt")
    for path in ([], "name", [1.5], [None], ["a"] * 5_000):
        assert page.post("set", text=text, path=path, value=1).status_code == 400
    for value in ("4", None, True, 1e999):
        body = json.dumps({"text": text, "path": ["d_model"], "value": value, "direction": 1})
        response = page.client.post(
            page.url("api/step"), content=body, headers={"content-type": "application/json"}
        )
        assert response.status_code == 400


def test_an_answer_is_sent_before_garbage_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(server, "_SENDING", 10.0)
    monkeypatch.setattr(gc, "collect", lambda *generation: order.append("collected"))

    async def answer(worker: ThreadPoolExecutor) -> None:
        async for item in server._in_thread(
            worker, lambda _: iter([{"part": "counts"}, {"part": "devices"}])
        ):
            await asyncio.sleep(0.01)
            order.append(item["part"])

    with ThreadPoolExecutor(1) as worker:
        asyncio.run(answer(worker))
    assert order == ["counts", "devices", "collected"]


def test_pages_of_two_tabs_are_both_answered(page: Page) -> None:
    text = text_of("tiny-gpt")
    with ThreadPoolExecutor(2) as tabs:
        answers = [
            tabs.submit(page.answer, text.replace("layers: 4", f"layers: {layers}")) for layers in (5, 6)
        ]
    for answer in answers:
        assert {"counts", "drawing", "costs", "devices", "nearest"} <= set(answer.result())


def test_an_answer_ends_with_its_request() -> None:
    asked: list[bool] = []

    def parts(is_wanted: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        while is_wanted():
            yield {"part": "counts"}
        asked.append(is_wanted())

    async def abort(worker: ThreadPoolExecutor) -> None:
        answer = server._in_thread(worker, parts)
        await anext(answer)
        await answer.aclose()

    with ThreadPoolExecutor(1) as worker:
        asyncio.run(abort(worker))
    assert asked == [False]


def test_the_server_is_bound_to_this_machine(page: Page) -> None:
    assert page.studio.address == f"http://127.0.0.1:{PORT}/{page.studio.token}/"
    assert len(page.studio.token) >= 32
    with TestClient(page.studio.app, base_url="http://testserver") as other:
        assert other.get(page.url("")).status_code == 403
