"""The archive of Spark's classes is used where it is of the same Java, Spark and jars."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelake.spark import class_archive
from tidelake.spark.application import static_settings

DRIVER = "spark.driver.extraJavaOptions"


def test_an_archive_of_other_jars_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "_FOLDER", tmp_path)
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"one")
    assert class_archive.java_options([str(jar)]) == ""
    path = class_archive.archive_path([str(jar)])
    path.write_bytes(b"")
    assert class_archive.java_options([str(jar)]) == f" -XX:SharedArchiveFile={path} -Xlog:cds*=off"
    jar.write_bytes(b"another")
    assert class_archive.java_options([str(jar)]) == ""
    assert class_archive.java_options([]) == ""


def test_an_application_is_started_with_the_archive_or_with_what_makes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDELAKE_SPARK_CONF", raising=False)
    monkeypatch.setattr("tidelake.spark.application.java_options", lambda _: " -XX:SharedArchiveFile=there")
    assert "SharedArchiveFile=there" in static_settings()[DRIVER]
    made = static_settings(java="-XX:ArchiveClassesAtExit=here")[DRIVER]
    assert ("ArchiveClassesAtExit=here" in made, "SharedArchiveFile" in made) == (True, False)
