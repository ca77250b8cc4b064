"""Canal's configuration: what its deployer 1.1.4 ships, the last one on Maven Central, as its server 1.1.7 reads it.

Between them Spring lost `<ref local>`, and the store of table definitions moved from iBATIS to MyBatis.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from urllib.request import urlopen
from zipfile import ZipFile

from tidelake.spark.application import ivy_folder

DESTINATION = "example"

_SOURCES = "https://repo.maven.apache.org/maven2/com/alibaba/otter/canal.deployer/1.1.4/canal.deployer-1.1.4-sources.jar"
_SHA256 = "abaef6c54618e71d2ec2eb3d9bd939c9bdefd09e62ce1d4a8ec33654ae947b3e"
_FILES = (
    "canal.properties",
    "example/instance.properties",
    "spring/base-instance.xml",
    "spring/file-instance.xml",
    "spring/tsdb/h2-tsdb.xml",
)
_STORES = ("history", "snapshot")
_STORE = "com.alibaba.otter.canal.parse.inbound.mysql.tsdb.dao.Meta{}{}"
_MYBATIS = '<!DOCTYPE {0} PUBLIC "-//mybatis.org//DTD {1} 3.0//EN" "http://mybatis.org/dtd/mybatis-3-{0}.dtd">'
_PARSER = '<bean id="eventParser" parent="baseEventParser">'
_LOG = """<configuration><appender name="out" class="ch.qos.logback.core.ConsoleAppender"><encoder>
<pattern>%d %level %logger{20} %msg%n</pattern></encoder></appender><root level="WARN"><appender-ref ref="out"/></root></configuration>
"""


def write_conf(folder: Path, server: Mapping[str, object], instance: Mapping[str, object]) -> None:
    """Make a folder for the classpath. server, instance: settings of canal.properties and of instance.properties."""
    with ZipFile(BytesIO(_sources())) as jar:
        texts = {name: jar.read(name).decode() for name in _FILES}
        stores = {name: jar.read(f"spring/tsdb/sql-map/sqlmap_{name}.xml").decode() for name in _STORES}
    jdbc = {"Url": "url", "UserName": "dbUsername", "Password": "dbPassword"}
    set_jdbc = "".join(f'<property name="tsdbJdbc{name}" value="${{canal.instance.tsdb.{key}:}}"/>' for name, key in jdbc.items())
    texts["canal.properties"] += _lines(server)
    texts["example/instance.properties"] += _lines(instance)
    texts["spring/file-instance.xml"] = (
        texts["spring/file-instance.xml"].replace("<ref local=", "<ref bean=").replace(_PARSER, _PARSER + set_jdbc)
    )
    texts["spring/tsdb/h2-tsdb.xml"] = (
        texts["spring/tsdb/h2-tsdb.xml"]
        .replace("org.springframework.orm.ibatis.SqlMapClientFactoryBean", "org.mybatis.spring.SqlSessionFactoryBean")
        .replace("sqlMapClient", "sqlSessionFactory")
    )
    texts["spring/tsdb/sql-map/sqlmap-config.xml"] = _store_config()
    texts |= {f"spring/tsdb/sql-map/sqlmap_{name}.xml": _mapper(name, text) for name, text in stores.items()}
    for name, text in (texts | {"logback.xml": _LOG}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def _sources() -> bytes:
    kept = ivy_folder() / Path(_SOURCES).name
    if not kept.is_file():
        with urlopen(_SOURCES) as response:
            jar = response.read()
        assert sha256(jar).hexdigest() == _SHA256, f"{_SOURCES} is not the file that it was"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(jar)
    return kept.read_bytes()


def _lines(settings: Mapping[str, object]) -> str:
    return "\n" + "".join(f"{name} = {value}\n" for name, value in settings.items())


def _store_config() -> str:
    aliases = "".join(f'<typeAlias alias="meta{n.title()}DO" type="{_STORE.format(n.title(), "DO")}"/>' for n in _STORES)
    mappers = "".join(f'<mapper resource="spring/tsdb/sql-map/sqlmap_{n}.xml"/>' for n in _STORES)
    head = _MYBATIS.format("config", "Config").replace("DOCTYPE config ", "DOCTYPE configuration ")
    return f"{head}<configuration><typeAliases>{aliases}</typeAliases><mappers>{mappers}</mappers></configuration>"


def _mapper(name: str, text: str) -> str:
    text = re.sub(r"<!DOCTYPE[^>]*>", _MYBATIS.format("mapper", "Mapper"), text)
    text = re.sub(r"<sqlMap[^>]*>", f'<mapper namespace="{_STORE.format(name.title(), "Mapper")}">', text)
    text = re.sub(r"<typeAlias[^>]*/>", "", text).replace("</sqlMap>", "</mapper>")
    return re.sub(r"#(\w+)#", r"#{\1}", text.replace("parameterClass", "parameterType").replace("resultClass", "resultType"))
