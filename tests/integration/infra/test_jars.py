"""Installing jars from a repository on this machine, when all goes well and when things fail."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest

from infra.jars import repository
from infra.jars.bundles import jars, registry_home
from infra.jars.install import install
from infra.jars.lock import Artifact, read_lock
from infra.jars.store import JarStore
from infra.settings import Settings
from shared.errors import OperatorError
from tests.integration.infra.mirror import Mirror, certificate, jar, serving, tar_gz

INSTALLER = """
import sys; from pathlib import Path; from infra.jars.install import install; from infra.settings import Settings
install(Settings(cache=Path(sys.argv[1]), jar_repository=sys.argv[2]), Path(sys.argv[3]))
"""


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with serving() as mirror:
        yield mirror


@pytest.fixture
def settings(tmp_path: Path, mirror: Mirror) -> Settings:
    return Settings(cache=tmp_path / "cache", jar_repository=f"http://{mirror.address}/maven")


@pytest.fixture
def lock(tmp_path: Path, mirror: Mirror) -> Path:
    """A lock of two jars that the mirror has."""
    lines = [mirror.publish(f"org.shop:{name}:1.0", jar(name)) for name in ("apple", "pear")]
    return write(tmp_path / "lock.toml", *lines)


def write(lock: Path, *lines: str) -> Path:
    lock.write_text("[kafka]\n" + "".join(lines))
    return lock


def states(settings: Settings, lock: Path) -> dict[str, str]:
    store = JarStore(settings.cache)
    return {artifact.file: store.verify(artifact) for bundle in read_lock(lock).values() for artifact in bundle}


def artifact(lock: Path, number: int = 0) -> Artifact:
    return read_lock(lock)["kafka"][number]


def failure(settings: Settings, lock: Path) -> OperatorError:
    with pytest.raises(OperatorError) as failed:
        install(settings, lock)
    return failed.value


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def start_installer(settings: Settings, lock: Path) -> subprocess.Popen[bytes]:
    arguments = [str(settings.cache), settings.jar_repository, str(lock)]
    return subprocess.Popen([sys.executable, "-c", INSTALLER, *arguments], start_new_session=True)


def test_a_jar_of_the_real_lock_comes_from_the_default_repository(tmp_path: Path) -> None:
    smallest = min(read_lock()["kafka"], key=lambda artifact: artifact.size)
    line = f'"{smallest.coordinate}" = {{ size = {smallest.size}, sha256 = "{smallest.sha256}" }}'
    lock = write(tmp_path / "lock.toml", line)
    assert install(Settings(cache=tmp_path, jar_repository=""), lock) == [smallest]
    assert states(Settings(cache=tmp_path), lock) == {smallest.file: "whole"}


def test_an_installed_jar_is_not_fetched_again(settings: Settings, lock: Path, mirror: Mirror) -> None:
    seen: list[tuple[int, int]] = []
    fetched = install(settings, lock, progress=lambda done, total: seen.append((done, total)))
    total = sum(artifact.size for artifact in fetched)
    assert states(settings, lock) == {"apple-1.0.jar": "whole", "pear-1.0.jar": "whole"}
    assert seen[0] == (0, total)
    assert seen[-1] == (total, total)
    assert sorted(path.name for path in (settings.cache / "jars").iterdir()) == [".lock", *states(settings, lock)]
    assert install(settings, lock) == []
    assert sorted(mirror.fetched) == ["apple-1.0.jar", "pear-1.0.jar"]


def test_a_corrupted_jar_is_found_named_and_fetched_again(settings: Settings, lock: Path, mirror: Mirror) -> None:
    install(settings, lock)
    mirror.fetched.clear()
    path = JarStore(settings.cache).path(artifact(lock))
    path.write_bytes(bytes(path.stat().st_size))
    messages: list[str] = []
    install(settings, lock, say=messages.append)
    assert messages == [f"{path} is corrupted. Fetching it again."]
    assert mirror.fetched == ["apple-1.0.jar"]
    assert set(states(settings, lock).values()) == {"whole"}


def test_a_jar_cut_short_is_noticed_without_reading_it(settings: Settings, lock: Path) -> None:
    install(settings, lock)
    store, apple = JarStore(settings.cache), artifact(lock)
    assert store.has(apple)
    os.truncate(store.path(apple), apple.size - 1)
    assert not store.has(apple)


def test_a_jar_with_other_content_than_locked_is_refused(settings: Settings, lock: Path, mirror: Mirror) -> None:
    apple, [path] = artifact(lock), [path for path in mirror.files if "apple" in path]
    good, mirror.files[path] = mirror.files[path], b"something else"
    error = failure(settings, lock)
    assert apple.file in error.message
    assert f"expected sha256 {apple.sha256}, got {sha256(b'something else').hexdigest()}" in error.message
    assert not JarStore(settings.cache).path(apple).exists()
    mirror.files[path] = good
    install(settings, lock)
    assert set(states(settings, lock).values()) == {"whole"}


def kill_install_between_apple_and_pear(settings: Settings, lock: Path, mirror: Mirror) -> Path:
    """Returns the path of the incomplete pear."""
    mirror.stall = {"pear-1.0.jar"}
    installer = start_installer(settings, lock)
    half = JarStore(settings.cache).incoming / "pear-1.0.jar"
    wait_until(lambda: states(settings, lock)["apple-1.0.jar"] == "whole" and half.exists())
    os.killpg(installer.pid, signal.SIGKILL)
    installer.wait()
    mirror.stall.clear()
    return half


def test_a_killed_install_keeps_what_was_complete_and_fetches_the_rest_next_time(
    settings: Settings, lock: Path, mirror: Mirror
) -> None:
    half = kill_install_between_apple_and_pear(settings, lock, mirror)
    assert states(settings, lock) == {"apple-1.0.jar": "whole", "pear-1.0.jar": "missing"}
    half.write_bytes(b"damaged")
    assert [artifact.name for artifact in install(settings, lock)] == ["pear"]
    assert set(states(settings, lock).values()) == {"whole"}
    assert mirror.fetched.count("apple-1.0.jar") == 1


def test_an_install_waits_for_another_that_is_running(settings: Settings, lock: Path, mirror: Mirror) -> None:
    mirror.stall = {"pear-1.0.jar"}
    installer = start_installer(settings, lock)
    wait_until(lambda: "pear-1.0.jar" in mirror.fetched)

    def let_it_finish(message: str) -> None:
        assert message == "Another install is running; waiting for it."
        mirror.resume.set()

    assert install(settings, lock, say=let_it_finish) == []
    assert installer.wait() == 0
    assert set(states(settings, lock).values()) == {"whole"}
    assert mirror.resume.is_set()
    assert mirror.fetched.count("pear-1.0.jar") == 1


def test_one_failure_stops_all_downloads_at_once(settings: Settings, tmp_path: Path, mirror: Mirror) -> None:
    lines = [mirror.publish("org.shop:quince:1", jar("quince")), '"org.shop:plum:2" = { size = 1, sha256 = "0" }']
    mirror.stall = {"quince-1.jar"}
    assert "org.shop:plum:2 could not be fetched" in failure(settings, write(tmp_path / "lock.toml", *lines)).message
    assert list((settings.cache / "jars").iterdir()) == [settings.cache / "jars/.lock"]


def test_two_installs_at_once_fetch_each_jar_once(settings: Settings, lock: Path, mirror: Mirror) -> None:
    with ThreadPoolExecutor() as pool:
        both = [pool.submit(install, settings, lock) for _ in range(2)]
    assert sorted(len(install.result()) for install in both) == [0, 2]
    assert sorted(mirror.fetched) == ["apple-1.0.jar", "pear-1.0.jar"]


def test_a_request_that_fails_once_is_repeated(settings: Settings, lock: Path, mirror: Mirror) -> None:
    mirror.refuse_once = {"pear-1.0.jar"}
    install(settings, lock)
    assert set(states(settings, lock).values()) == {"whole"}


def test_a_jar_that_the_repository_lacks_is_named(settings: Settings, tmp_path: Path) -> None:
    lock = write(tmp_path / "lock.toml", '"org.shop:plum:2" = { size = 1, sha256 = "0" }')
    error = failure(settings, lock)
    assert error.message == (
        "org.shop:plum:2 could not be fetched: 127.0.0.1 answered 404 Not Found to /maven/org/shop/plum/2/plum-2.jar"
    )
    assert "TILL_JAR_REPOSITORY" in error.hint


def test_a_repository_that_does_not_answer_is_given_up(
    settings: Settings, tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = write(tmp_path / "lock.toml", mirror.publish("org.shop:quince:1", jar("quince")))
    mirror.stall = {"quince-1.jar"}
    monkeypatch.setattr(repository, "SILENCE_SECONDS", 0.5)
    assert "did not answer" in failure(settings, lock).message


def test_a_full_disk_is_noticed_before_anything_is_fetched(settings: Settings, tmp_path: Path, mirror: Mirror) -> None:
    lock = write(tmp_path / "lock.toml", f'"org.shop:melon:1" = {{ size = {10**18}, sha256 = "0" }}')
    error = failure(settings, lock)
    assert "1000000000000 MB are needed" in error.message
    assert "TILL_CACHE" in error.hint
    assert mirror.fetched == []


def test_a_cache_that_cannot_be_written_is_a_clear_error(settings: Settings, lock: Path) -> None:
    settings.cache.write_text("a file where the folder should be")
    assert f"Could not install into {settings.cache}/jars" in failure(settings, lock).message


def test_a_company_authority_is_trusted_when_ssl_cert_file_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = certificate(tmp_path / "authority.pem")
    with serving(tls=authority) as mirror:
        lock = write(tmp_path / "lock.toml", mirror.publish("org.shop:fig:1", jar("fig")))
        settings = Settings(cache=tmp_path / "cache", jar_repository=f"https://{mirror.address}/maven")
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        assert "certificate verify failed" in failure(settings, lock).message
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        install(settings, lock)
    assert states(settings, lock) == {"fig-1.jar": "whole"}


def test_a_missing_ssl_cert_file_is_a_clear_error(
    settings: Settings, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    assert "SSL_CERT_FILE=/nowhere.pem cannot be read" in failure(settings, lock).message


def test_a_proxy_of_the_environment_is_used(
    tmp_path: Path, lock: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://{mirror.address}")
    monkeypatch.delenv("no_proxy", raising=False)
    settings = Settings(cache=tmp_path / "cache", jar_repository="http://only.the.proxy.knows/maven")
    install(settings, lock)
    assert set(states(settings, lock).values()) == {"whole"}


def test_an_archive_is_unpacked_whole_and_verified_file_by_file(
    settings: Settings, tmp_path: Path, mirror: Mirror
) -> None:
    sums = "".join(f"{sha256(text).hexdigest()}  lib/{text.decode()}\n" for text in (b"core", b"web"))
    line = mirror.publish("org.shop:registry:1:all@tar.gz", tar_gz(web="web", core="core"))
    unpacked = f', unpacked = "{sha256(sums.encode()).hexdigest()}" }}'
    lock = write(tmp_path / "lock.toml", line.replace(" }", unpacked))
    archive, folder = artifact(lock), settings.cache / "jars/registry-1-all"
    install(settings, lock)
    assert (folder / "lib/core").read_text() == "core"
    assert JarStore(settings.cache).verify(archive) == "whole"

    (folder / "lib/core").write_text("c0re")
    assert JarStore(settings.cache).verify(archive) == "corrupted"
    install(settings, lock)
    assert (folder / "lib/core").read_text() == "core"

    (folder / "SHA256SUMS").write_text("")
    assert JarStore(settings.cache).verify(archive) == "corrupted"


def test_a_missing_bundle_is_an_error_that_names_the_command_to_install_it(tmp_path: Path) -> None:
    settings = Settings(cache=tmp_path)
    with pytest.raises(OperatorError, match="92 of the 92 files of kafka are missing") as missing:
        jars(settings, "kafka")
    assert missing.value.hint == "till install"
    with pytest.raises(OperatorError, match="registry"):
        registry_home(settings)


def test_the_lock_has_no_two_files_of_one_name_and_every_sum() -> None:
    artifacts = [artifact for bundle in read_lock().values() for artifact in bundle]
    assert len({artifact.file for artifact in artifacts}) == len(artifacts)
    assert all(len(artifact.sha256) == 64 and artifact.size > 0 for artifact in artifacts)
    assert all(len(artifact.unpacked) == 64 for artifact in artifacts if artifact.is_archive)
