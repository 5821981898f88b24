"""A web server on the loopback that tests of webhooks talk to.  By the path of the URL:

  /ok /404 /500 ...   answers with this code         /then/500,429,200   with the next code each time
  /hang               never answers                  /drip               one byte of header a second
  /garbage            no HTTP
  /huge               a body of 10 MB                /headers            headers without end
  /close              closes without an answer       /redirect           302 to /ok
"""

import http.server
import ssl
import threading
import time


class WebServer:
    """Serves until `close`.  `requests` has (path, headers, body, time) of each request."""

    def __init__(self, certificate=None, port=0):
        self.requests = []
        self.rounds = {}
        self.ended = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                outer.requests.append((self.path, dict(self.headers), body, time.time()))
                outer.answer(self)

            def log_message(self, *_):
                pass

            def handle(self):
                try:
                    super().handle()
                except OSError:
                    pass  # the client has ended the connection

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.scheme = "https"
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path):
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    def paths(self):
        return [path for path, _, _, _ in list(self.requests)]

    def bodies(self, path):
        return [body for seen, _, body, _ in list(self.requests) if seen == path]

    def answer(self, request):
        word, _, rest = request.path[1:].partition("/")
        if word == "hang":
            self.ended.wait(60)
        elif word == "close":
            request.connection.close()
        elif word == "drip":
            request.wfile.write(b"HTTP/1.1 200 ")
            while not self.ended.wait(1):
                request.wfile.write(b"H")
        elif word == "garbage":
            request.wfile.write(b"\0\1\2garbage\r\n\r\n" * 10)
        elif word == "headers":
            request.wfile.write(b"HTTP/1.1 200 fine\r\n")
            while not self.ended.is_set():
                request.wfile.write(b"X-More: " + b"y" * 1000 + b"\r\n")
        elif word == "then":
            codes = rest.split(",")
            turn = self.rounds.setdefault(request.path, 0)
            self.rounds[request.path] += 1
            self.reply(request, int(codes[min(turn, len(codes) - 1)]))
        elif word == "redirect":
            self.reply(request, 302, {"Location": "/ok"})
        else:
            self.reply(request, int(word) if word.isdigit() else 200, {}, 10 << 20 if word == "huge" else 3)

    @staticmethod
    def reply(request, code, headers=None, size=3):
        request.send_response(code)
        for name, value in (headers or {}).items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(size))
        request.end_headers()
        request.wfile.write(b"z" * size)

    def close(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()
