"""What Java does not take from the environment by itself: the company's certificates, and its proxy."""

import os
import re
import warnings
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.utils import CryptographyDeprecationWarning

from shared.errors import OperatorError

PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
PASSWORD = "public"  # Java wants one; there are only certificates to protect


def network_options(folder: Path) -> list[str]:
    """Options for a JVM; the trust store that they may name is written into the folder."""
    return [*_trust(folder), *_proxies()]


def _trust(folder: Path) -> list[str]:
    bundle = os.environ.get("SSL_CERT_FILE")
    if not bundle:
        return []
    try:
        certificates = _certificates(Path(bundle).read_bytes())
    except OSError as failed:
        raise OperatorError(f"SSL_CERT_FILE={bundle} cannot be read: {failed.strerror}.") from failed
    if not certificates:
        raise OperatorError(f"SSL_CERT_FILE={bundle} holds no PEM certificate.")
    named = [PKCS12Certificate(certificate, str(n).encode()) for n, certificate in enumerate(certificates)]
    store = folder / "trust.p12"
    store.write_bytes(serialize_java_truststore(named, BestAvailableEncryption(PASSWORD.encode())))
    return [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"]


def _certificates(bundle: bytes) -> list[x509.Certificate]:
    """One by one: a system's bundle may hold an odd old authority, which must not spoil the others."""
    certificates = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        for pem in PEM.findall(bundle):
            with suppress(ValueError):
                certificates.append(x509.load_pem_x509_certificate(pem))
    return certificates


def _proxies() -> list[str]:
    proxies, options = getproxies(), []
    for scheme in ("http", "https"):
        proxy = urlsplit(proxies.get(scheme, ""))
        if proxy.hostname:
            options += [f"-D{scheme}.proxyHost={proxy.hostname}", f"-D{scheme}.proxyPort={proxy.port or 80}"]
    if direct := proxies.get("no"):
        hosts = [host.strip().lstrip(".") for host in direct.split(",")]
        options.append("-Dhttp.nonProxyHosts=" + "|".join(f"{host}|*.{host}" for host in hosts))
    return options
