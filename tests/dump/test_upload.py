"""Upload to S3: against a server on loopback that speaks the protocol, and against none."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from neurontools.dump.limits import Deadline
from neurontools.dump.upload import UploadError, split_prefix, upload
from tests.dump.support import core_file, environment, flags, run, whole_dumps

DIRECTORY = "dt-20250917-194443-cid-0000000000000000"
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture
def server() -> Iterator[str]:
    """Run moto's S3 server and return its address."""
    pytest.importorskip("boto3", reason="the upload needs boto3 (extra s3)")
    threaded = pytest.importorskip("moto.server", reason="the upload is tested against moto's server")
    running = threaded.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        running.stop()


def test_files_arrive(tmp_path: Path, server: str) -> None:
    import boto3

    client = boto3.client("s3", endpoint_url=server, aws_access_key_id="testing", aws_secret_access_key="testing",
                          region_name="us-east-1")  # fmt: skip
    client.create_bucket(Bucket="dumps")
    core = core_file(tmp_path / "core", extra=9 << 20)  # in several parts
    directory = tmp_path / DIRECTORY
    variables = environment(NEURONTOOLS_CORE_FILE=str(core), AWS_ENDPOINT_URL=server, **KEYS)
    ended = run(flags(directory, s3_output_prefix=f"s3://dumps/fleet/{DIRECTORY}"), env=variables)
    assert ended.returncode == 0, ended.stderr
    listed = client.list_objects_v2(Bucket="dumps", Prefix=f"fleet/{DIRECTORY}/")["Contents"]
    assert {each["Key"].rpartition("/")[2]: each["Size"] for each in listed} == {
        path.name: path.stat().st_size for path in directory.iterdir()
    }
    assert ended.stdout.splitlines()[-1].endswith(".json")  # the manifest last
    # Without a local directory the files go to S3 alone.
    ended = run(flags("", pid=5, s3_output_prefix="s3://dumps/alone"), env=variables)
    assert ended.returncode == 0, ended.stderr
    assert len(client.list_objects_v2(Bucket="dumps", Prefix="alone/")["Contents"]) == 2
    # A bucket that is not there.
    ended = run(flags(directory, s3_output_prefix="s3://other/x"), env=variables)
    assert ended.returncode == 3 and "NoSuchBucket" in ended.stderr and "Traceback" not in ended.stderr


def test_a_dead_server_leaves_the_local_dump(tmp_path: Path) -> None:
    pytest.importorskip("boto3", reason="the upload needs boto3 (extra s3)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    core = core_file(tmp_path / "core")
    ended = run(
        flags(tmp_path / DIRECTORY, s3_output_prefix="s3://dumps/x", timeout=20),
        env=environment(NEURONTOOLS_CORE_FILE=str(core), AWS_ENDPOINT_URL=address, **KEYS),
    )
    assert ended.returncode == 3
    assert "upload failed: s3://dumps/x: " in ended.stderr and "Could not connect" in ended.stderr
    assert whole_dumps(tmp_path / DIRECTORY) == {897}
    assert ended.stdout == f"{tmp_path / DIRECTORY}\n"


def test_a_server_that_never_answers_is_left_in_time(tmp_path: Path) -> None:
    pytest.importorskip("boto3", reason="the upload needs boto3 (extra s3)")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        ended = run(
            flags(tmp_path / DIRECTORY, s3_output_prefix="s3://dumps/x", timeout=6),
            env=environment(AWS_ENDPOINT_URL=f"http://127.0.0.1:{silent.getsockname()[1]}", **KEYS),
        )
    assert ended.returncode == 3 and "upload failed" in ended.stderr
    assert whole_dumps(tmp_path / DIRECTORY) == {897}


def test_without_boto3(tmp_path: Path) -> None:
    (tmp_path / "boto3.py").write_text("raise ImportError")
    variables = environment()
    variables["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{variables['PYTHONPATH']}"
    ended = run(flags(tmp_path / DIRECTORY, s3_output_prefix="s3://dumps/x"), env=variables)
    assert ended.returncode == 3 and "needs boto3: pip install '" in ended.stderr and "[s3]'" in ended.stderr
    assert whole_dumps(tmp_path / DIRECTORY) == {897}


@pytest.mark.parametrize("prefix", ["s3:/x", "file:///x", "s3://", "bucket/x"])
def test_prefixes_of_another_form(prefix: str) -> None:
    with pytest.raises(UploadError, match="s3://bucket/prefix"):
        upload([], prefix, Deadline(1))


def test_bucket_and_key() -> None:
    assert split_prefix("s3://bucket/a/b/") == ("bucket", "a/b")
    assert split_prefix("s3://bucket") == ("bucket", "")
