"""A Spark Connect server that answers every request with nothing and keeps what was asked of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
from pyspark.sql.connect import proto
from pyspark.sql.connect.types import pyspark_types_to_proto_types
from pyspark.sql.pandas.types import from_arrow_schema


@dataclass
class Recorded:
    """plans: requests that Spark writes into its event log; settings: the others, which it does not write down. values: of settings."""

    schema: pa.Schema
    port: int = 0
    plans: list[bytes] = field(default_factory=list)
    settings: list[bytes] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """For SparkSession.builder.remote."""
        return f"sc://127.0.0.1:{self.port}"

    @contextmanager
    def shared(self, folder: Path) -> Iterator[str]:
        """In place of spark.connect.shared_server."""
        yield self.url

    def config(self, request: Any, context: Any) -> Any:
        """Set, unset and get."""
        self.settings.append(request.SerializeToString())
        answer = proto.ConfigResponse(session_id=request.session_id, server_side_session_id="s")
        asked = request.operation
        kind = asked.WhichOneof("op_type")
        if kind == "set":
            self.values |= {p.key: p.value for p in asked.set.pairs}
        for key in asked.unset.keys:
            self.values.pop(key, None)
        if kind == "get_with_default":
            pairs = [(p.key, self.values.get(p.key, p.value)) for p in asked.get_with_default.pairs]
        else:
            pairs = [(key, self.values.get(key, "")) for key in (*asked.get.keys, *asked.get_option.keys)]
        answer.pairs.extend(proto.KeyValue(key=key, value=value) for key, value in pairs)
        return answer

    def analyze(self, request: Any, context: Any) -> Any:
        """Every plan has the one schema."""
        self.plans.append(request.SerializeToString())
        answer = proto.AnalyzePlanResponse(session_id=request.session_id, server_side_session_id="s")
        if request.WhichOneof("analyze") == "schema":
            answer.schema.schema.CopyFrom(pyspark_types_to_proto_types(from_arrow_schema(self.schema)))
        return answer

    def execute(self, request: Any, context: Any) -> Iterator[Any]:
        """No rows."""
        self.plans.append(request.SerializeToString())
        known = {"session_id": request.session_id, "server_side_session_id": "s", "operation_id": request.operation_id}
        out = pa.BufferOutputStream()
        nothing = pa.RecordBatch.from_pylist([], schema=pa.schema([("nothing", pa.int32())]))
        with pa.ipc.new_stream(out, nothing.schema) as stream:
            stream.write_batch(nothing)
        batch = proto.ExecutePlanResponse.ArrowBatch(row_count=0, data=out.getvalue().to_pybytes())
        yield proto.ExecutePlanResponse(**known, response_id=str(uuid.uuid4()), arrow_batch=batch)
        yield proto.ExecutePlanResponse(**known, response_id=str(uuid.uuid4()), result_complete=proto.ExecutePlanResponse.ResultComplete())

    def release(self, request: Any, context: Any) -> Any:
        """The end of an operation."""
        return proto.ReleaseExecuteResponse(session_id=request.session_id, server_side_session_id="s", operation_id=request.operation_id)

    def released(self, request: Any, context: Any) -> Any:
        """The end of a session."""
        return proto.ReleaseSessionResponse(session_id=request.session_id, server_side_session_id="s")


@contextmanager
def recorder(schema: pa.Schema) -> Iterator[Recorded]:
    """A server on loopback, for which every frame has this schema."""
    recorded = Recorded(schema)

    def handler(of: Callable[..., Any], request: Any, *, stream: bool = False) -> Any:
        make = grpc.unary_stream_rpc_method_handler if stream else grpc.unary_unary_rpc_method_handler
        return make(of, request_deserializer=request.FromString, response_serializer=lambda answer: answer.SerializeToString())

    methods = {
        "Config": handler(recorded.config, proto.ConfigRequest),
        "AnalyzePlan": handler(recorded.analyze, proto.AnalyzePlanRequest),
        "ExecutePlan": handler(recorded.execute, proto.ExecutePlanRequest, stream=True),
        "ReleaseExecute": handler(recorded.release, proto.ReleaseExecuteRequest),
        "ReleaseSession": handler(recorded.released, proto.ReleaseSessionRequest),
    }
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("spark.connect.SparkConnectService", methods),))
    recorded.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield recorded
    finally:
        server.stop(None).wait()
