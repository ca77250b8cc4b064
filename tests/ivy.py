"""Jars for the servers of tests, through Ivy as Spark's are: from Maven Central, once, into the user's cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp

from tidelake.spark.application import ivy_folder
from tidelake.spark.java import ensure_java

_FILE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="tidelake" module="tests"/><dependencies>{}</dependencies></ivy-module>"""
_DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" conf="*->default"/>'
_CLASSIFIER = (
    '<dependency org="{0}" name="{1}" rev="{2}" conf="*->default">'
    '<artifact name="{1}" type="jar" ext="jar"/><artifact name="{1}" type="jar" ext="jar" m:classifier="{3}"/></dependency>'
)


_FILE_ALONE = (
    '<dependency org="{0}" name="{1}" rev="{2}" conf="*->default" transitive="false">'
    '<artifact name="{1}" type="{3}" ext="{3}"/></dependency>'
)


def fetched(name: str, dependencies: Sequence[str]) -> Path:
    """The folder of this name in the cache, with the jars that the dependencies need, fetched at the first use.

    dependencies: `group:module:version`, with `:classifier` for a second jar of the module, or with `@zip` for that file alone.
    """
    folder = ivy_folder() / name
    if not folder.is_dir():
        ivy = next((Path(str(find_spec("pyspark").origin)).parent / "jars").glob("ivy-*.jar"))  # type: ignore[union-attr]
        ivy_folder().mkdir(parents=True, exist_ok=True)
        part = Path(mkdtemp(dir=ivy_folder(), prefix=f"{name}-"))
        try:
            wanted = part / "ivy.xml"
            wanted.write_text(_FILE.format("".join(_element(d) for d in dependencies)))
            what = ["-ivy", str(wanted), "-confs", "default", "-retrieve", f"{part}/[artifact]-[revision](-[classifier]).[ext]"]
            command = [java(), "-jar", str(ivy), "-cache", str(ivy_folder() / "cache"), *what]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
            for group_and_module in dependencies:
                if not list(part.glob(f"{group_and_module.split(':')[1]}-*.jar")):
                    raise RuntimeError(f"Ivy found no {group_and_module}")
            part.rename(folder)
        except OSError:  # another process was first
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


def java() -> str:
    """The Java that Spark runs on."""
    ensure_java()
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def _element(dependency: str) -> str:
    if "@" in dependency:
        return _FILE_ALONE.format(*re.split("[:@]", dependency))
    parts = dependency.split(":")
    return (_DEPENDENCY if len(parts) == 3 else _CLASSIFIER).format(*parts)
