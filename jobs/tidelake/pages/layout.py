"""What all pages share: template, style, script, links to the pages above, and the page that says why there is no other one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from tidelake import __version__
from tidelake.pages.addresses import Address
from tidelake.validate.quality.inline import REPORT_STYLE, content_security_policy, inline
from tidelake.validate.quality.navigation import Link, Navigation
from tidelake.validate.quality.templates import environment

_STYLE = ("tidelake.pages", "page/site.css")
_SCRIPT = ("tidelake.pages", "page/site.js")


@dataclass(frozen=True, slots=True, kw_only=True)
class AirflowLinks:
    """Addresses in Airflow. home: its first page; dag: of a feed's DAG, with `{feed}`."""

    home: str
    dag: str


def page_policy() -> str:
    """Return the Content-Security-Policy under which every page works."""
    return content_security_policy(*_parts())


def missing_page(address: Address, title: str, *paragraphs: str, commands: Sequence[str] = (), airflow: AirflowLinks | None = None) -> str:
    """Return a page that says why there is no other one at this address, and what to do."""
    return rendered("missing.html.j2", navigation(address, title, airflow=airflow), title=title, paragraphs=paragraphs, commands=commands)


def rendered(template: str, where: Navigation, **given: Any) -> str:
    """Return a page from a template."""
    styles, scripts = _parts()
    common = {"navigation": where, "styles": styles, "scripts": scripts, "policy": content_security_policy(styles, scripts)}
    return environment("tidelake.pages").get_template(template).render(version=__version__, **common, **given)


def compile_templates() -> None:
    """Compile the templates of all pages. This process and its forks keep them."""
    made = environment("tidelake.pages")
    for name in made.list_templates(extensions=["j2"]):
        made.get_template(name)


def navigation(
    here: Address,
    name: str,
    *,
    airflow: AirflowLinks | None,
    previous: Link | None = None,
    next_: Link | None = None,
    tables: Mapping[str, str] | None = None,
) -> Navigation:
    """Return the links of a page. name: the page's own; tables: addresses of the pages of tables, by name."""
    above = [Link(text="Airflow", href=airflow.home)] if airflow else []
    above += [Link(text="Feeds", href=here.link(Address()))] if here.feed else []
    above += [Link(text=here.feed, href=here.link(Address(feed=here.feed)))] if here.month or here.hour or here.table else []
    dag = Link(text="DAG in Airflow", href=airflow.dag.format(feed=here.feed)) if airflow and here.feed else None
    return Navigation(above=above, here=name, previous=previous, next=next_, dag=dag, tables=tables or {})


def _parts() -> tuple[list[Markup], list[Markup]]:
    return [inline(*REPORT_STYLE), inline(*_STYLE)], [inline(*_SCRIPT)]
