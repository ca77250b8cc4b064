from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from tests.archives.objects import Message, compressed, jsonl, read
from tidelake.errors import StorageError

MESSAGES = [Message(i, b"v" * (i % 50)) for i in range(3_000)]
TEXT = jsonl(MESSAGES)


def xerial(content: bytes = TEXT, chunk: int = 32 << 10) -> bytes:
    codec = pa.Codec("snappy")
    out = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2
    for start in range(0, len(content), chunk):
        block = codec.compress(content[start : start + chunk], asbytes=True)
        out += len(block).to_bytes(4, "big") + block
    return out


CODECS = {"gz": gzip.compress(TEXT), "zst": compressed("zstd", TEXT), "lz4": compressed("lz4", TEXT), "snappy": xerial()}


@pytest.mark.parametrize("extension", CODECS)
def test_an_object_is_read_through_the_codec_of_its_name(extension: str, tmp_path: Path) -> None:
    assert read("aiven-jsonl", tmp_path, CODECS[extension], f"t+0+0.jsonl.{extension}") == MESSAGES


@pytest.mark.parametrize("extension", CODECS)
def test_a_codec_is_recognised_where_the_name_is_silent_about_it(extension: str, tmp_path: Path) -> None:
    assert read("aiven-jsonl", tmp_path, CODECS[extension], "t+0+0") == MESSAGES


@pytest.mark.parametrize("extension", CODECS)
@pytest.mark.parametrize("cut", [1, 4, 2_000])
def test_an_object_that_is_cut_short_is_an_error_that_names_it(extension: str, cut: int, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"BAD_OBJECT: t\+0\+0.*cannot be decompressed") as caught:
        read("aiven-jsonl", tmp_path, CODECS[extension][:-cut], f"t+0+0.jsonl.{extension}")
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(("extension", "content"), [("gz", CODECS["zst"]), ("snappy", TEXT), ("zst", CODECS["gz"]), ("gz", b"\x1f")])
def test_a_name_that_promises_another_codec_is_an_error(extension: str, content: bytes, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"BAD_OBJECT: t\+0\+0.*the name says .*, the first bytes are"):
        read("aiven-jsonl", tmp_path, content, f"t+0+0.jsonl.{extension}")


def test_an_object_of_several_gzip_members_is_read_to_its_end(tmp_path: Path) -> None:
    half = jsonl(MESSAGES[:1_500]) + b"\n"
    content = gzip.compress(half) + gzip.compress(TEXT[len(half) :])
    assert read("aiven-jsonl", tmp_path, content, "t+0+0.jsonl.gz") == MESSAGES


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x05\xff\xff\xff\xff\x0f"])
def test_a_snappy_chunk_with_an_absurd_length_is_an_error_and_takes_no_memory(length: bytes, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"a snappy chunk"):
        read("aiven-jsonl", tmp_path, xerial(b"") + length, "t+0+0.jsonl.snappy")
