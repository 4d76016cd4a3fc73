"""A Maven repository on this machine, like a company's mirror: over HTTP or HTTPS, healthy or failing."""

import io
import ipaddress
import ssl
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Mirror(ThreadingHTTPServer):
    """Serves what was published. `fetched` lists the requested files, in order."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.fetched: list[str] = []
        self.refuse_once: set[str] = set()
        self.stall: set[str] = set()
        self.resume = Event()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def publish(self, coordinate: str, content: bytes) -> str:
        """Serves the content under its Maven path, and returns its line in a lock."""
        group, name, version, *classifier = coordinate.partition("@")[0].split(":")
        file = "-".join((name, version, *classifier)) + "." + (coordinate.partition("@")[2] or "jar")
        self.files[f"/maven/{group.replace('.', '/')}/{name}/{version}/{file}"] = content
        return f'"{coordinate}" = {{ size = {len(content)}, sha256 = "{sha256(content).hexdigest()}" }}\n'


class _Handler(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.server.fetched.append(name)
        content, half = self._answer(), 0
        with suppress(OSError):  # the client was killed
            if name in self.server.stall:
                half = len(content) // 2
                self.wfile.write(content[:half])
                self.server.resume.wait()
            self.wfile.write(content[half:])

    def _answer(self) -> bytes:
        path = "/maven/" + self.path.partition("/maven/")[2]  # a proxy is sent the whole URL
        name = path.rpartition("/")[2]
        refused = name in self.server.refuse_once
        self.server.refuse_once -= {name} if refused else set()
        content = self.server.files.get(path)
        self.send_response(503 if refused else 200 if content is not None else 404)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        return b"" if refused else content or b""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        pass


@contextmanager
def serving(tls: Path | None = None) -> Iterator[Mirror]:
    mirror = Mirror()
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls)
        mirror.socket = context.wrap_socket(mirror.socket, server_side=True)
    thread = Thread(target=mirror.serve_forever)
    thread.start()
    try:
        yield mirror
    finally:
        mirror.resume.set()
        mirror.shutdown()
        mirror.server_close()
        thread.join()


def jar(name: str, size: int = 1000) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(name, name * size)
    return content.getvalue()


def tar_gz(**files: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"lib/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return content.getvalue()


def certificate(path: Path) -> Path:
    """Writes a key and a self-signed certificate for 127.0.0.1 into one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A company's own authority")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(secret + certificate.public_bytes(Encoding.PEM))
    return path
