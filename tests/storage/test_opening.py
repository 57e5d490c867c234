"""Which URL opens which store, and what is refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from windrow.errors import ConfigError, InvalidInput
from windrow.storage import LocalStore, open_store, options_for
from windrow.storage.kinds import AZURE, GCS, HTTP, S3, S3_EXPRESS

AZURE_KEY = {"account_name": "account", "account_key": "a2V5"}


class TestLocal:
    def test_a_plain_path(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert open_store("lake").url == open_store("./lake/").url == open_store(str(tmp_path / "lake")).url

    def test_a_home_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        assert open_store("~/lake").url == (tmp_path / "lake").as_uri()

    @pytest.mark.parametrize("name", ["lake", "größe", "a b", "100%25", "a#b?c", "a:b"])
    def test_the_url_of_a_store_opens_it_again(self, tmp_path, name):
        store = open_store(str(tmp_path / name))
        store.put("a", b"1")
        assert open_store(store.url).get("a") == b"1"
        assert (tmp_path / name / "a").read_bytes() == b"1"

    @pytest.mark.parametrize(
        "url", ["file:///tmp/lake", "file://localhost/tmp/lake", "file:/tmp/lake", "FILE:///tmp/lake"]
    )
    def test_file_urls(self, url):
        assert open_store(url).url == Path("/tmp/lake").resolve().as_uri()

    @pytest.mark.parametrize("url", ["file://server/lake", "file:lake", "file:///lake%00", "file:///lake?a=b"])
    def test_file_urls_that_name_no_local_folder(self, url):
        with pytest.raises(InvalidInput, match="write file:///folder"):
            open_store(url)

    @pytest.mark.parametrize("url", ["", "a\0b", "~no-such-user-anywhere/lake"])
    def test_paths_that_cannot_be(self, url):
        with pytest.raises(InvalidInput, match=r"store (URL|path)"):
            open_store(url)

    @pytest.mark.parametrize("url", ["lake", "file:///lake", "memory://"])
    def test_options_are_refused_where_there_are_none(self, url):
        with pytest.raises(ConfigError, match="unknown option 'region'"):
            open_store(url, options={"region": "eu-central-1"})


class TestRemote:
    @pytest.mark.parametrize(
        ("url", "options", "kind"),
        [
            ("s3://bucket/lake", {}, S3),
            ("S3://bucket/lake", {}, S3),
            ("s3a://bucket", {"AWS_REGION": "eu-central-1", "max_retries": "3", "retry_timeout": "10"}, S3),
            ("s3://bucket", {"disable_bulk_delete": "false"}, S3),
            ("s3://bucket", {"aws_disable_bulk_delete": "false", "aws_allow_http": "true"}, S3),
            ("s3://bucket--eun1-az1--x-s3/lake", {"s3_express": "true"}, S3_EXPRESS),
            ("gs://bucket/lake", {}, GCS),
            ("az://container/lake", AZURE_KEY, AZURE),
            ("az://container/lake", {"azure_storage_account_name": "account"}, AZURE),
            ("abfss://container@account.dfs.core.windows.net/lake", {}, AZURE),
            ("abfs://container@account.dfs.core.windows.net/lake", {}, AZURE),
            ("http://example.org/lake", {"timeout": "5s"}, HTTP),
            ("https://example.org:8443/lake", {}, HTTP),
        ],
    )
    def test_urls(self, url, options, kind):
        store = open_store(url, options=options)
        assert store._kind is kind
        assert store.url == url
        assert store.gap == kind.gap

    def test_memory_is_new_each_time(self):
        store = open_store("memory://")
        store.put("a", b"1")
        assert list(open_store("memory://").list()) == []

    @pytest.mark.parametrize("url", ["ftp://example.org", "hdfs://host/lake", "s3x://bucket", "://"])
    def test_an_unknown_scheme_is_told_with_the_known_ones(self, url):
        with pytest.raises(InvalidInput, match=r"no such kind of store; use a path or file://, .*s3://"):
            open_store(url)

    @pytest.mark.parametrize(
        "url",
        [
            "http://user:secret@example.org/lake",
            "https://example.org/lake?sig=secret",
            "https://example.org/#secret",
            "s3://id:secret@example.org/lake",
            "az://example.org/lake?sig=secret",
        ],
    )
    def test_an_address_with_secrets_is_refused_and_not_repeated(self, url):
        with pytest.raises(InvalidInput, match=r"store URL on host example\.org") as caught:
            open_store(url, options={"no_such_option": "1"})
        assert "secret" not in str(caught.value)

    def test_a_web_request_cannot_set_the_proxy(self, monkeypatch):
        # CGI hands the headers of a request on as variables that start with HTTP_.
        monkeypatch.setenv("HTTP_PROXY_URL", "http://evil.example.org")
        assert "proxy_url" not in open_store("http://example.org/lake")._inner.client_options

    @pytest.mark.parametrize(
        ("url", "options", "words"),
        [
            ("s3://bucket", {"no_such_option": "1"}, "no_such_option"),
            ("s3://bucket", {"timeout": "soon"}, "soon"),
            ("s3://bucket", {"max_retries": "many"}, "'max_retries' is 'many'; give a number"),
            ("s3://bucket", {"retry_timeout": "inf"}, "'retry_timeout' is 'inf'"),
            ("s3://bucket", {"max_retries": "-1"}, "'max_retries' is '-1'"),
            ("http://example.org", {"region": "x"}, "unknown option 'region'"),
            ("az://container/lake", {}, "Account must be specified"),
        ],
    )
    def test_options_that_cannot_be_used_are_named(self, url, options, words, monkeypatch):
        monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
        with pytest.raises(ConfigError, match=words) as caught:
            open_store(url, options=options)
        assert str(caught.value).startswith(f"{url}: ")


def test_a_path_opens_a_durable_store(tmp_path):
    assert isinstance(open_store(str(tmp_path)), LocalStore)


def test_obstore_is_not_imported_for_local_stores():
    script = "import sys, windrow.storage; windrow.storage.open_store('/tmp'); sys.exit('obstore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("./lake", set()),
        ("file:///lake", set()),
        ("memory://", set()),
        ("process://7", set()),
        ("https://example.org", {"timeout"}),
        ("s3://bucket", {"region", "AWS_ACCESS_KEY_ID", "timeout"}),
        ("gs://bucket", {"region", "timeout", "google_service_account"}),
    ],
)
def test_a_store_gets_those_of_a_lakes_options_that_it_takes(url, names):
    options = dict.fromkeys(("region", "AWS_ACCESS_KEY_ID", "timeout", "google_service_account"), "1")
    assert options_for(url, options).keys() == names
    assert options_for(url, None) == {}
