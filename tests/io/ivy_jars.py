"""Jars of Maven Central with all that they depend on, through the Ivy that PySpark brings (docs/reference/platform.md 10)."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

import tidelake.spark.application
from tests.io.whole_folder import whole_folder
from tidelake.spark.application import ivy_folder
from tidelake.spark.java import ensure_java

_SETTINGS = Path(tidelake.spark.application.__file__).with_name("ivysettings.xml")  # Maven Central and nothing else
_FETCH_SECONDS = 1800


def ivy_jars(name: str, modules: Sequence[str]) -> Path:
    """The folder of that name in the cache, with the jars of modules and all that they need; fetched at the first use.

    modules: `group:artifact:version`; with `:classifier` the module's second jar, too; with `@zip` that file of the module alone.
    """

    def fetch(part: Path) -> None:
        ivy = next((Path(str(find_spec("pyspark").origin)).parent / "jars").glob("ivy-*.jar"))  # type: ignore[union-attr]
        wanted = part / "ivy.xml"
        wanted.write_text(_ivy_xml(name, modules))
        what = ["-ivy", str(wanted), "-confs", "default", "-retrieve", f"{part}/[artifact]-[revision](-[classifier]).[ext]"]
        command = [java(), "-jar", str(ivy), "-settings", str(_SETTINGS), "-cache", str(ivy_folder() / "cache"), *what]
        said = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_FETCH_SECONDS)
        lacking = [m for m in modules if not list(part.glob("{1}-{2}*".format(*re.split("[:@]", m))))]
        if said.returncode or lacking:
            raise RuntimeError(f"Ivy did not fetch {', '.join(lacking or modules)}:\n{said.stdout[-2000:]}")
        wanted.unlink()

    return whole_folder(ivy_folder() / name, fetch)


def java() -> str:
    """The program `java` that Spark runs on, too."""
    ensure_java()
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def _ivy_xml(name: str, modules: Sequence[str]) -> str:
    """What Ivy calls a module that depends on these: on what they need at run time."""
    maven = 'xmlns:m="http://ant.apache.org/ivy/maven"'
    return "\n".join(
        [
            f'<ivy-module version="2.0" {maven}><info organisation="tests" module={quoteattr(name)}/><dependencies>',
            *map(_dependency, modules),
            "</dependencies></ivy-module>",
        ]
    )


def _dependency(module: str) -> str:
    coordinates, _, kind = module.partition("@")
    group, artifact, version, *classifiers = coordinates.split(":")
    named = f"org={quoteattr(group)} name={quoteattr(artifact)} rev={quoteattr(version)}"
    if kind:
        return f'<dependency {named} conf="default->default" transitive="false">{_artifact(artifact, kind)}</dependency>'
    second = "".join(_artifact(artifact, "jar", f" m:classifier={quoteattr(c)}") for c in classifiers)
    first = _artifact(artifact, "jar") if classifiers else ""
    return f'<dependency {named} conf="default->default">{first}{second}</dependency>'


def _artifact(name: str, kind: str, more: str = "") -> str:
    return f"<artifact name={quoteattr(name)} type={quoteattr(kind)} ext={quoteattr(kind)}{more}/>"
