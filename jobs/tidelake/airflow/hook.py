"""The connection type `tidelake`: what the tasks of a feed need to reach its archive, lake and catalog."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import ClassVar

from airflow.sdk import BaseHook

from tidelake.airflow.connections import VARIABLES, given, stage_environment
from tidelake.airflow.stage import error_in, schemas_folder
from tidelake.config.feed import existing_feeds, load_feed
from tidelake.errors import ConfigError

TEST_SECONDS = 45
SHOWN = 8  # lines, because Airflow shows them in a small window


class TidelakeHook(BaseHook):
    """Tests a connection. Tasks take their variables from the connection `tidelake` by themselves."""

    conn_name_attr: ClassVar[str] = "tidelake_conn_id"
    default_conn_name: ClassVar[str] = VARIABLES
    conn_type: ClassVar[str] = "tidelake"
    hook_name: ClassVar[str] = "Tidelake"

    def __init__(self, tidelake_conn_id: str = VARIABLES) -> None:
        super().__init__()
        self.tidelake_conn_id = tidelake_conn_id

    def test_connection(self) -> tuple[bool, str]:
        """Return whether archive, lake and catalog of every feed answer with this connection, and what does not.

        A child process asks them, because Airflow's server has no client of the object store.
        """
        schemas = schemas_folder()
        variables = dict[str, str]()
        try:
            for name in existing_feeds(schemas):
                variables |= given(load_feed(schemas, name, expand=False), self.tidelake_conn_id)
        except ConfigError as e:
            return False, str(e)
        command = [sys.executable, "-P", "-m", "tidelake.doctor.reach", str(schemas)]
        environment = stage_environment(variables)
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TEST_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return False, f"no answer within {TEST_SECONDS} s: check the endpoint, and that its server is running"
        if done.returncode:
            return False, error_in(done.stderr.splitlines()) or f"the check ended with status {done.returncode}"
        found = json.loads(done.stdout)
        if problems := found["problems"]:
            more = [f"and {len(problems) - SHOWN} more: `tidelake doctor` lists all"] if len(problems) > SHOWN else []
            return False, "\n".join([*problems[:SHOWN], *more])
        empty = f"; nothing is stored yet in {', '.join(found['empty'])}" if found["empty"] else ""
        return True, f"{found['places']} places of {found['feeds']} feeds answer{empty}"
