"""Quality reports in Airflow's web server: shows the stored report of a feed's hour to users who may read the feed's DAG.

A child process with the environment of a stage reads the report from the lake on request. The web server itself has neither a client nor
credentials of the object store.
"""

import html
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tidelake.airflow.connections import given, stage_environment
from tidelake.airflow.stage import dag_id, error_in, schemas_folder
from tidelake.config.feed import load_feed
from tidelake.errors import ConfigError, StorageError
from tidelake.tso import parse_hour

READ_SECONDS = 60
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_NOTE = """<!DOCTYPE html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">
<title>{0} · Tidelake</title><style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 44rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }}
pre {{ padding: .75rem 1rem; border-radius: 8px; background: #8882; white-space: pre-wrap }}
</style><h1>{0}</h1>{1}"""


def quality_app() -> Any:
    """Return the app with GET /{feed}/{hour}: 200 the report, 404 how to create it, 502 why the lake cannot be read; 401 and 403 by
    Airflow. A browser without a valid login is sent to Airflow's login, which leads back to the page.
    """
    from airflow.api_fastapi.app import API_ROOT_PATH
    from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
    from fastapi import Depends, FastAPI, HTTPException, Request, Response
    from fastapi.exception_handlers import http_exception_handler
    from fastapi.responses import HTMLResponse, RedirectResponse

    def may_read(feed: str, request: Request, user: GetUserDep) -> None:
        requires_access_dag("GET", param_dag_id=dag_id(feed))(request, user)

    def page(feed: str, hour: str) -> HTMLResponse:
        status, content = answer(schemas_folder(), feed, hour.removesuffix(".html"))  # reports link to files beside them
        return HTMLResponse(content, status, HEADERS)

    async def refuse(request: Request, error: HTTPException) -> Response:
        if is_no_login(error.status_code, error.detail) and "text/html" in request.headers.get("accept", ""):
            login = f"{API_ROOT_PATH}api/v2/auth/login?{urlencode({'next': request.url.path})}"
            return RedirectResponse(login, headers=HEADERS)
        return await http_exception_handler(request, error)

    app = FastAPI(
        title="Tidelake quality reports",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        exception_handlers={HTTPException: refuse},
    )
    app.get("/{feed}/{hour}", dependencies=[Depends(may_read)])(page)
    return app


def is_no_login(status: int, detail: str) -> bool:
    """Whether Airflow refuses a request for want of a valid login, by the rule of its own pages."""
    return status == 401 or (status == 403 and detail == "Invalid JWT token")


def answer(schemas: Path, name: str, hour: str) -> tuple[int, str]:
    """Return (HTTP status, page)."""
    try:
        parse_hour(hour)
        feed = load_feed(schemas, name, expand=False)
        report = _stored(schemas, name, hour, stage_environment(given(feed)))
    except ConfigError as e:
        return 404, _note("No such report", str(e))
    except StorageError as e:
        return 502, _note("The lake cannot be read", str(e))
    if not report:
        text = f"Nothing is stored for hour {hour} of feed {name}; the report is written when the hour is published or blocked."
        same = f"--feed {name} --hour {hour}"
        commands = f"tidelake run {same}\ntidelake report {same}   # if the hour is landed"
        return 404, _note("No report yet", text, "Run the hour, here or by hand:", commands=commands)
    return 200, report


def _stored(schemas: Path, feed: str, hour: str, environment: dict[str, str]) -> str:
    command = [sys.executable, "-P", "-m", "tidelake.validate.quality.stored", str(schemas), feed, hour]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=READ_SECONDS, check=False)
    except subprocess.TimeoutExpired as e:
        raise StorageError(f"no answer within {READ_SECONDS} s", remedy="check that the object store is running") from e
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        code, _, message = error_in(lines).partition(": ")
        if message:
            raise StorageError(message, code=code)
        raise StorageError(f"the reader ended with status {done.returncode}: {lines[-1] if lines else 'no output'}")
    return done.stdout


def _note(title: str, *paragraphs: str, commands: str = "") -> str:
    body = "".join(f"<p>{html.escape(text)}</p>" for text in paragraphs)
    return _NOTE.format(html.escape(title), body + (f"<pre>{html.escape(commands)}</pre>" if commands else ""))
