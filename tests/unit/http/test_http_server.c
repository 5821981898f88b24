// The HTTP server over real sockets on loopback: what it answers, whom it refuses, and that a
// client that hangs holds up no other.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "server/http/http_server.h"
#include "tests/support/test.h"

enum { BIG = 8 * 1024 * 1024, ANSWER = 4096, WAIT_MS = 20000 };

static unsigned port;
static struct http_server *server;
static char seen_path[256], seen_accept[256];
static bool seen_authorized;
static atomic_uint calls;

static void handler(void *context, const struct http_request *request,
                    struct http_response *response)
{
    (void)context;
    (void)snprintf(seen_path, sizeof seen_path, "%s", request->path);
    (void)snprintf(seen_accept, sizeof seen_accept, "%s", request->accept);
    seen_authorized = request->is_authorized;
    atomic_fetch_add(&calls, 1);
    if (strcmp(request->path, "/nothing") == 0)
        return;
    response->code = request->is_authorized ? 200 : 401;
    response->type = "text/plain";
    response->size = strcmp(request->path, "/big") == 0 ? BIG : 5;
    response->body = malloc(response->size);
    assert_non_null(response->body);
    memset(response->body, 'x', response->size);
}

// Starts the server at a port of its own.
static void start(const char *host, const char *token)
{
    struct error err;
    struct http_server_settings settings = {.host = host, .token = token, .handler = handler};
    enum status status = STATUS_BUSY;
    for (unsigned n = 0; n < 50 && status == STATUS_BUSY; n++) {
        port = 10000 + (unsigned)(clock_monotonic_ns() / 1000 + (unsigned)getpid() * 7) % 20000;
        settings.port = port;
        status = http_server_start(&server, &settings, &err);
    }
    expect_ok(status, &err);
}

// From 127.0.0.`from`.
static int connect_from(unsigned from)
{
    const struct sockaddr_in name = {.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)port),
                                     .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct sockaddr_in own = {.sin_family = AF_INET,
                                    .sin_addr = {htonl(INADDR_LOOPBACK - 1 + from)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&name, sizeof name), 0);
    return fd;
}

static int connect_to_server(void)
{
    return connect_from(1);
}

static void send_all(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

// Reads until the server closes; keeps the beginning in `answer` and returns how much came.
static size_t receive_all(int fd, char answer[ANSWER])
{
    static char bytes[65536];
    size_t size = 0, kept = 0;
    for (;;) {
        struct pollfd event = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&event, 1, WAIT_MS), 1);
        const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got <= 0)
            break;
        const size_t part = (size_t)got < ANSWER - 1 - kept ? (size_t)got : ANSWER - 1 - kept;
        memcpy(answer + kept, bytes, part);
        kept += part;
        size += (size_t)got;
    }
    answer[kept] = '\0';
    (void)close(fd);
    return size;
}

static const char *ask(const char *request)
{
    static char answer[ANSWER];
    const int fd = connect_to_server();
    send_all(fd, request);
    (void)receive_all(fd, answer);
    return answer;
}

static void expect_code(const char *request, unsigned code)
{
    const char *answer = ask(request);
    const char *begin = format_text("HTTP/1.1 %u ", code);
    if (strncmp(answer, begin, strlen(begin)) != 0)
        fail_msg("%.60s: expected %u, got %.60s", request, code, answer);
}

TEST_CASE(test_answers_and_closes)
{
    start("127.0.0.1", NULL);
    const char *answer = ask("GET /some?x=1 HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n");
    assert_non_null(strstr(answer, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(answer, "Connection: close\r\n"));
    assert_non_null(strstr(answer, "Content-Type: text/plain\r\n"));
    assert_non_null(strstr(answer, "\r\n\r\nxxxxx"));
    assert_string_equal(seen_path, "/some");
    assert_string_equal(seen_accept, "text/plain");
    assert_true(seen_authorized);
    expect_code("GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", 500);
    http_server_stop(server);
}

TEST_CASE(test_get_only)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "HEAD", "OPTIONS", "BREW"};
    start("localhost", NULL);
    const unsigned before = atomic_load(&calls);
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        expect_code(
            format_text("%s / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", methods[i]), 405);
    assert_non_null(strstr(ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
                           "Allow: GET\r\n"));
    assert_int_equal(atomic_load(&calls), before);
    http_server_stop(server);
}

TEST_CASE(test_token)
{
    static const struct {
        const char *header;
        unsigned code;
    } cases[] = {
        {"", 401},
        {"Authorization: Bearer sesame-sesame-16\r\n", 200},
        {"authorization: bearer sesame-sesame-16\r\n", 200},
        {"Authorization: Bearer sesame-sesame-17\r\n", 401},
        {"Authorization: Bearer sesame-sesame-1\r\n", 401},
        {"Authorization: Bearer sesame-sesame-166\r\n", 401},
        {"Authorization: Bearer \r\n", 401},
        {"Authorization: Bearer\r\n", 401},
        {"Authorization: Basic sesame-sesame-16\r\n", 401},
        {"Authorization: sesame-sesame-16\r\n", 401},
    };
    start("127.0.0.1", "sesame-sesame-16");
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        expect_code(format_text("GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", cases[i].header),
                    cases[i].code);
    assert_non_null(strstr(ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "WWW-Authenticate: Bearer"));
    http_server_stop(server);
}

TEST_CASE(test_refuses_what_is_no_request)
{
    char *longest = calloc(1, 40000);
    assert_non_null(longest);
    start("127.0.0.1", NULL);
    const unsigned before = atomic_load(&calls);
    static const char beginning[] = "GET /";
    memcpy(longest, beginning, sizeof beginning - 1);
    memset(longest + sizeof beginning - 1, 'a', 39000);
    const int fd = connect_to_server();
    char answer[ANSWER];
    (void)send(fd, longest, strlen(longest), MSG_NOSIGNAL); // may be refused on the way
    (void)receive_all(fd, answer);
    assert_null(strstr(answer, " 200 "));
    assert_null(strstr(ask("\x16\x03\x01 nonsense\r\n\r\n"), " 200 "));
    assert_int_equal(atomic_load(&calls), before);
    expect_code("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200); // it goes on
    free(longest);
    http_server_stop(server);
}

// Connects a client that never ends its request, or one that reads nothing of a large page.
static int hang(unsigned from, bool reads_nothing)
{
    const unsigned before = atomic_load(&calls);
    const int fd = connect_from(from);
    send_all(fd, reads_nothing ? "GET /big HTTP/1.1\r\nHost: a\r\n\r\n" : "GET /big HTTP/1.1\r\n");
    while (reads_nothing && atomic_load(&calls) == before)
        clock_sleep_until_ns(clock_monotonic_ns() + 1000000);
    return fd;
}

static bool is_closed(int fd)
{
    struct pollfd event = {.fd = fd, .events = POLLRDHUP};
    return poll(&event, 1, 0) == 1 && event.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

static void expect_quick_answer(unsigned from)
{
    static char answer[ANSWER];
    const uint64_t began_ns = clock_monotonic_ns();
    const int fd = connect_from(from);
    send_all(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)receive_all(fd, answer);
    assert_memory_equal(answer, "HTTP/1.1 200", 12);
    assert_true(clock_monotonic_ns() - began_ns < UINT64_C(5000000000)); // not after a timeout
}

// However many there are, of another address or the same, others are answered at once.
TEST_CASE(test_hung_clients)
{
    int hung[3 * HTTP_SERVER_CONNECTIONS], others[3];
    start("*", NULL);
    for (unsigned i = 0; i < COUNT_OF(others); i++)
        others[i] = hang(3 + i, false);
    for (unsigned i = 0; i < COUNT_OF(hung); i++) {
        hung[i] = hang(2, i % 2);
        expect_quick_answer(1);
        expect_quick_answer(2);
    }
    for (unsigned i = 0; i < COUNT_OF(others); i++) // one of each address: they may wait
        assert_false(is_closed(others[i]));
    assert_true(is_closed(hung[0]));
    for (unsigned i = 0; i < COUNT_OF(hung); i++)
        (void)close(hung[i]);
    for (unsigned i = 0; i < COUNT_OF(others); i++)
        (void)close(others[i]);
    http_server_stop(server);
}

// As many at once as libmicrohttpd takes, and more.
TEST_CASE(test_flood_of_connections)
{
    int hung[100];
    start("127.0.0.1", NULL);
    for (unsigned i = 0; i < COUNT_OF(hung); i++)
        hung[i] = connect_from(2 + i % 20);
    expect_quick_answer(1);
    for (unsigned i = 0; i < COUNT_OF(hung); i++)
        (void)close(hung[i]);
    http_server_stop(server);
}

// A server with another token takes over; one that cannot start changes nothing.
TEST_CASE(test_restart)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n";
    struct error err;
    struct http_server_settings settings = {.host = "127.0.0.1", .handler = handler};
    start("127.0.0.1", "sesame-sesame-16");
    settings.port = port;
    settings.token = "another-sesame-17";
    expect_ok(http_server_restart(&server, &settings, &err), &err);
    expect_code(format_text(request, "another-sesame-17"), 200);
    expect_code(format_text(request, "sesame-sesame-16"), 401);
    settings.token = NULL;
    settings.certificate = settings.key = "nonsense";
    assert_int_equal(http_server_restart(&server, &settings, &err), STATUS_INVALID);
    for (unsigned i = 0; i < 20; i++)
        expect_code(format_text(request, "another-sesame-17"), 200);
    http_server_stop(server);
}

TEST_CASE(test_stops_with_open_connections)
{
    start("127.0.0.1", NULL);
    const int fd = connect_to_server();
    send_all(fd, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    http_server_stop(server);
    (void)close(fd);
    http_server_stop(NULL);
}

TEST_CASE(test_cannot_listen)
{
    static const struct {
        const char *host, *certificate, *key;
        enum status status;
    } cases[] = {
        {"256.0.0.1", NULL, NULL, STATUS_INVALID},
        {"host.example", NULL, NULL, STATUS_INVALID}, // names are not resolved
        {"198.51.100.1", NULL, NULL, STATUS_IO},      // of no interface
        {"127.0.0.1", "no certificate", "no key", STATUS_INVALID},
    };
    struct error err;
    struct http_server *none = NULL;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct http_server_settings settings = {.host = cases[i].host,
                                                      .port = 10000 + (unsigned)getpid() % 20000,
                                                      .certificate = cases[i].certificate,
                                                      .key = cases[i].key,
                                                      .handler = handler};
        assert_int_equal(http_server_start(&none, &settings, &err), cases[i].status);
        assert_null(none);
        assert_non_null(strstr(err.text, cases[i].host));
    }
    start("*", NULL);
    const struct http_server_settings same = {
        .host = "127.0.0.1", .port = port, .handler = handler};
    assert_int_equal(http_server_start(&none, &same, &err), STATUS_BUSY);
    expect_code("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200);
    http_server_stop(server);
}

static bool has_ipv6(void)
{
    const struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&name, sizeof name) == 0;
    if (fd >= 0)
        (void)close(fd);
    return has;
}

// At ::1 for IPv6 alone; at "*" for both.
TEST_CASE(test_ipv6)
{
    static const char *const at[] = {"::1", "*"};
    char answer[ANSWER];
    if (!has_ipv6())
        skip();
    for (size_t i = 0; i < COUNT_OF(at); i++) {
        start(at[i], NULL);
        const struct sockaddr_in6 name = {.sin6_family = AF_INET6,
                                          .sin6_port = htons((uint16_t)port),
                                          .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (const struct sockaddr *)&name, sizeof name), 0);
        send_all(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        (void)receive_all(fd, answer);
        assert_non_null(strstr(answer, "HTTP/1.1 200 OK"));
        http_server_stop(server);
    }
}

TEST_MAIN(test_answers_and_closes, test_get_only, test_token, test_refuses_what_is_no_request,
          test_hung_clients, test_flood_of_connections, test_restart,
          test_stops_with_open_connections, test_cannot_listen, test_ipv6)
