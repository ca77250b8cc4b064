"""Quality pages in Airflow's web server: feeds, hours and tables, each shown to users who may read the feed's DAG."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tidelake.airflow.pages import Answer, note, page_answer
from tidelake.airflow.stage import QUALITY_PREFIX, WEB_PREFIX, dag_id, schemas_folder
from tidelake.config.feed import feed_names
from tidelake.pages.addresses import parse_path

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_POLICY = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def quality_app() -> Any:
    """Return the app with the pages (pages/addresses.py): 200, 404 what is missing, 502 why the lake cannot be read; 401 and 403 by
    Airflow. A browser without a valid login is sent to Airflow's login, which leads back to the page.
    """
    from airflow.api_fastapi.app import API_ROOT_PATH
    from airflow.api_fastapi.core_api.security import GetUserDep
    from fastapi import FastAPI, HTTPException, Request, Response
    from fastapi.exception_handlers import http_exception_handler
    from fastapi.responses import HTMLResponse, RedirectResponse

    def page(path: str, request: Request, user: GetUserDep) -> Response:
        if parse_path(path) is None and parse_path(f"{path}/") is not None:
            return RedirectResponse(f"{path}/index.html", headers=HEADERS)  # relative links need the folder
        answer = _answer(path, schemas_folder(), request, user, API_ROOT_PATH)
        return HTMLResponse(answer.content, answer.status, HEADERS | {"Content-Security-Policy": f"{answer.policy}; {_POLICY}"})

    async def refuse(request: Request, error: HTTPException) -> Response:
        if is_no_login(error.status_code, error.detail) and "text/html" in request.headers.get("accept", ""):
            login = f"{API_ROOT_PATH}api/v2/auth/login?{urlencode({'next': request.url.path})}"
            return RedirectResponse(login, headers=HEADERS)
        return await http_exception_handler(request, error)

    app = FastAPI(
        title="Tidelake quality pages",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        exception_handlers={HTTPException: refuse},
    )
    folder = QUALITY_PREFIX.removeprefix(WEB_PREFIX)
    app.get(folder)(lambda: RedirectResponse(f"{API_ROOT_PATH}{QUALITY_PREFIX[1:]}/index.html", headers=HEADERS))  # Airflow adds no slash
    app.get(f"{folder}/{{path:path}}")(page)
    return app


def is_no_login(status: int, detail: str) -> bool:
    """Whether Airflow refuses a request for want of a valid login, by the rule of its own pages."""
    return status == 401 or (status == 403 and detail == "Invalid JWT token")


def _answer(path: str, schemas: Path, request: Any, user: Any, root: str) -> Answer:
    """Return the page at a path. Raises HTTPException (403) for a feed whose DAG the user may not read, whether it exists or not."""
    address = parse_path(path)
    if address is None:
        return note(404, "No such page", "There is no page at this address.")
    if address.feed:
        _require(address.feed, request, user)
        return page_answer(schemas, address.path, [address.feed], root)
    return page_answer(schemas, address.path, [feed for feed in feed_names(schemas) if _may_read(feed, request, user)], root)


def _may_read(feed: str, request: Any, user: Any) -> bool:
    from fastapi import HTTPException

    try:
        _require(feed, request, user)
    except HTTPException:
        return False
    return True


def _require(feed: str, request: Any, user: Any) -> None:
    from airflow.api_fastapi.core_api.security import requires_access_dag

    requires_access_dag("GET", param_dag_id=dag_id(feed))(request, user)
