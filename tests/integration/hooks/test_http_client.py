#!/usr/bin/env python3
"""The collector's HTTP client against servers that hang, flood, redirect or show a certificate that
nobody signed."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support"))
from programs import free_ports, has_report  # noqa: E402
from web_server import WebServer  # noqa: E402


def post(url, size=100, stop_ms=None, environment=None):
    """(status, code, milliseconds, text)"""
    words = [os.environ["HTTP_POST"], url, str(size)] + ([str(stop_ms)] if stop_ms else [])
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True,
                          env={**os.environ, **(environment or {})})
    assert not has_report(done.stderr), done.stderr
    status, code, took, text = done.stdout.rstrip("\n").split("|", 3)
    return status, int(code), int(took), text


class HttpClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = WebServer()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def test_answers(self):
        for code in (200, 202, 204, 302, 400, 404, 429, 500, 503):
            self.assertEqual(post(self.server.url(f"/{code}"))[:2], ("done", code))

    def test_what_is_sent(self):
        for size in (0, 1, 5000, 3 << 20):
            self.assertEqual(post(self.server.url("/sent"), size)[:2], ("done", 200))
            _, headers, body, _ = self.server.requests[-1]
            self.assertEqual(len(body), size)
            self.assertEqual(headers["Content-Type"], "application/json")
            self.assertNotIn("Authorization", headers)

    def test_no_redirect_is_followed(self):
        before = self.server.paths().count("/ok")
        self.assertEqual(post(self.server.url("/redirect"))[:2], ("done", 302))
        self.assertEqual(self.server.paths().count("/ok"), before)

    def test_a_large_answer_is_not_read(self):
        status, code, took, _ = post(self.server.url("/huge"))
        self.assertEqual((status, code), ("done", 200))
        self.assertLess(took, 5000)
        status, _, took, _ = post(self.server.url("/headers"))
        self.assertEqual(status, "done")
        self.assertLess(took, 5000)

    def test_no_answer(self):
        for url, words in ((self.server.url("/close"), "no answer"),
                           (self.server.url("/garbage"), "no answer"),
                           (f"http://127.0.0.1:{free_ports(1)}/", "no answer"),
                           ("http://no-such-host.invalid/", "no answer")):
            status, _, _, text = post(url)
            self.assertEqual(status, "no answer")
            self.assertIn(words, text)
            self.assertNotIn(url, text)

    def test_time_limit(self):
        for path in ("/hang", "/drip"):
            status, _, took, _ = post(self.server.url(path))
            self.assertEqual(status, "took too long")
            self.assertTrue(9900 < took < 14000, took)

    def test_stop(self):
        status, _, took, _ = post(self.server.url("/hang"), stop_ms=300)
        self.assertEqual(status, "cancelled")
        self.assertLess(took, 2000)

    def test_other_schemes(self):
        for url in ("file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "telnet://127.0.0.1",
                    "http://", "http://a b/", "127.0.0.1:99999"):
            self.assertIn(post(url)[0], ("invalid argument or input", "no answer"), url)

    def test_the_environment_names_no_proxy(self):
        proxy = f"http://127.0.0.1:{free_ports(1)}"
        with tempfile.TemporaryDirectory() as home:
            netrc = pathlib.Path(home, ".netrc")
            netrc.write_text("machine 127.0.0.1 login me password secret\n")
            netrc.chmod(0o600)
            environment = {"http_proxy": proxy, "HTTPS_PROXY": proxy, "ALL_PROXY": proxy, "HOME": home}
            self.assertEqual(post(self.server.url("/proxy"), environment=environment)[:2], ("done", 200))
        self.assertNotIn("Authorization", self.server.requests[-1][1])

    def test_a_certificate_that_nobody_signed(self):
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                            "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                            "-keyout", key, "-out", certificate], check=True, capture_output=True)
            server = WebServer((certificate, key))
            status, _, _, text = post(server.url("/ok"))
            self.assertEqual(status, "no answer")
            self.assertIn("certificate", text)
            self.assertEqual(server.requests, [])
            server.close()


if __name__ == "__main__":
    unittest.main()
