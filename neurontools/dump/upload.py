"""Upload of a dump's files to S3, through boto3 where it is installed (extra `s3`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from neurontools.dump.limits import Deadline
from neurontools.version import install_with

__all__ = ["UploadError", "split_prefix", "upload"]

_ATTEMPTS = 4
_CONNECT_SECONDS, _READ_SECONDS = 5, 30


class UploadError(Exception):
    """Say in one line why files could not be uploaded."""


def split_prefix(prefix: str) -> tuple[str, str]:
    """Return bucket and key prefix of s3://bucket/prefix; UploadError for another form."""
    scheme, _, rest = prefix.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not bucket:
        raise UploadError(f"{prefix!r} is not of the form s3://bucket/prefix")
    return bucket, key.strip("/")


def upload(files: Iterable[tuple[str, Path]], prefix: str, deadline: Deadline) -> list[str]:
    """Upload files in order and return their URLs; the manifest should be the last one.

    Each file is tried several times with growing pauses, by boto3's standard retry mode.  The endpoint is that of
    AWS_ENDPOINT_URL where it is set.  Raises UploadError.
    """
    bucket, key = split_prefix(prefix)
    try:
        import boto3  # deferred: optional boto3
        from boto3.exceptions import Boto3Error  # deferred: optional boto3
        from boto3.s3.transfer import TransferConfig  # deferred: optional boto3
        from botocore.config import Config  # deferred: optional botocore
        from botocore.exceptions import BotoCoreError, ClientError  # deferred: optional botocore
    except ImportError:
        raise UploadError(f"the upload needs boto3: {install_with('s3')}") from None
    seconds = max(1, min(_CONNECT_SECONDS, deadline.left / _ATTEMPTS))
    config = Config(
        connect_timeout=seconds,
        read_timeout=max(1, min(_READ_SECONDS, deadline.left / 2)),
        retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
    )
    in_this_thread = TransferConfig(use_threads=False)  # the time limit interrupts the main thread only
    sent: list[str] = []
    try:
        client = boto3.client("s3", config=config)
        for name, path in files:
            target = f"{key}/{name}" if key else name
            client.upload_file(str(path), bucket, target, Config=in_this_thread)
            sent.append(f"s3://{bucket}/{target}")
    except (Boto3Error, BotoCoreError, ClientError, OSError, ValueError) as error:
        line = " ".join(str(error).split())
        raise UploadError(f"{prefix}: {line} ({len(sent)} files uploaded)") from None
    return sent
