"""Downloads locked files from a Maven repository over plain HTTP.

Nothing is resolved: the lock names every file, and a Maven repository is a tree of folders. Proxies (`https_proxy`,
`no_proxy`) and certificates (`SSL_CERT_FILE`) are taken from the environment, as every HTTP client does.
"""

import asyncio
import os
import re
import ssl
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx

from infra.jars.lock import Artifact
from shared.errors import OperatorError

DOWNLOADS_AT_ONCE = 8
ATTEMPTS = 3
WAIT_BETWEEN_ATTEMPTS = 0.5
CONNECT_SECONDS = 20.0
SILENCE_SECONDS = 30.0
TEMPORARY = {httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_MANY_REQUESTS}
HINT = "Settings that matter here: TILL_JAR_REPOSITORY (a mirror), https_proxy, SSL_CERT_FILE."

# No host is named in this project. Ivy, which is inside the pyspark wheel, names the public repository in a properties
# file of its jar, from which it is read.
IVY_DEFAULTS = "org/apache/ivy/core/settings/repository.properties"
IVY_ROOT = re.compile(r"^ivy\.ibiblio\.default\.artifact\.root\s*=\s*(\S+)", re.MULTILINE)

Received = Callable[[int], None]


class Repository:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._turn = asyncio.Semaphore(DOWNLOADS_AT_ONCE)

    async def download(self, artifact: Artifact, file: Path, received: Received = lambda _: None) -> None:
        """Writes the artifact to `file`, and tries again when the repository fails for a moment.

        `received` is called with the number of bytes of each chunk, and with a negative number when a try is given up.
        """
        async with self._turn:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    await self._try(artifact, file, received)
                    return
                except (httpx.TransportError, httpx.HTTPStatusError) as failed:
                    if attempt == ATTEMPTS or not _is_temporary(failed):
                        raise OperatorError(
                            f"{artifact.coordinate} could not be fetched: {_reason(failed)}", HINT
                        ) from failed
                await asyncio.sleep(WAIT_BETWEEN_ATTEMPTS * attempt)

    async def _try(self, artifact: Artifact, file: Path, received: Received) -> None:
        count = 0
        try:
            with file.open("wb") as output:
                async with self._http.stream("GET", artifact.path) as answer:
                    answer.raise_for_status()
                    async for chunk in answer.aiter_bytes():
                        output.write(chunk)
                        count += len(chunk)
                        received(len(chunk))
        except BaseException:
            received(-count)
            raise


@asynccontextmanager
async def open_repository(root: str = "") -> AsyncIterator[Repository]:
    """Opens the repository at `root`, or the public one."""
    timeout = httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
    async with httpx.AsyncClient(
        base_url=root or _public_root(), verify=_trusted(), timeout=timeout, follow_redirects=True
    ) as http:
        yield Repository(http)


def _public_root() -> str:
    spark = find_spec("pyspark")
    if not spark or not spark.origin:
        raise OperatorError("The package pyspark, which names the public Maven repository, is missing.", "make install")
    ivy = next((Path(spark.origin).parent / "jars").glob("ivy-*.jar"))
    with zipfile.ZipFile(ivy) as jar:
        root = IVY_ROOT.search(jar.read(IVY_DEFAULTS).decode())
    if not root:
        raise OperatorError(f"{ivy.name} names no public repository.", "Set TILL_JAR_REPOSITORY to a Maven repository.")
    return root[1]


def _trusted() -> ssl.SSLContext:
    """Trusts the certificates of SSL_CERT_FILE, or those of certifi; and those of the system."""
    try:
        trusted = httpx.create_ssl_context()
        trusted.load_default_certs()
    except OSError as failed:  # an SSLError is one, too
        file = os.environ.get("SSL_CERT_FILE", "")
        raise OperatorError(f"SSL_CERT_FILE={file} cannot be read: {failed.strerror or failed}.") from failed
    return trusted


def _is_temporary(failed: httpx.TransportError | httpx.HTTPStatusError) -> bool:
    if not isinstance(failed, httpx.HTTPStatusError):
        return not isinstance(failed, httpx.UnsupportedProtocol)
    return failed.response.is_server_error or failed.response.status_code in TEMPORARY


def _reason(failed: httpx.TransportError | httpx.HTTPStatusError) -> str:
    match failed:
        case httpx.HTTPStatusError(response=answer, request=request):
            return f"{request.url.host} answered {answer.status_code} {answer.reason_phrase} to {request.url.path}"
        case httpx.ReadTimeout():
            return f"the repository did not answer for {SILENCE_SECONDS:.0f} s"
        case _:
            return str(failed) or type(failed).__name__
