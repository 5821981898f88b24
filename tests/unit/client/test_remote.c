#include "tests/support/test.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/remote/remote.h"
#include "common/sys/clock.h"
#include "common/wire/address.h"
#include "common/wire/codec.h"
#include "common/wire/listener/listener.h"

#define SECOND_NS UINT64_C(1000000000)

static const uint64_t patience_ns = 30 * SECOND_NS; // where an answer is sure to come
static const uint64_t brief_ns = SECOND_NS / 10;    // where none will

// ---- A collector for tests --------------------------------------------------------
//
// It answers a query by what the query's metric says.

static struct collector {
    char folder[64];
    char address[80];
    pthread_t thread;
    atomic_bool stop;
    atomic_uint credit_messages; // LiveCredit seen
    atomic_uint credit;          // messages they allowed
    uint64_t live_missed;        // to send with live records
    unsigned live_rows;          // messages to send once there is credit
    struct wire_route reader;    // who gave credit last
    uint64_t audit;              // a query of an audit not yet answered; 0: none
    unsigned pings_answered;     // before it is, and how many will be
    unsigned lost;               // queries yet to be lost
    atomic_uint unasked;         // messages of UNASKED_SIZE yet to be sent to who asked last
    struct wire_route asker;
    bool runs;
} collector;

enum { UNASKED = 100, UNASKED_SIZE = 1 << 20 };

static bool send_message(struct port *socket, const struct wire_route *route,
                         const struct message *message)
{
    unsigned char *bytes;
    size_t size;
    assert_int_equal(codec_encode(&bytes, &size, message, NULL), STATUS_OK);
    enum status status = port_send(socket, route, bytes, size);
    free(bytes);
    return status == STATUS_OK;
}

// A table of one number.
static struct result *one_number(int64_t number)
{
    struct result *result;
    assert_int_equal(result_new(&result), STATUS_OK);
    assert_int_equal(result_add_column(result, "cleared", UNIT_COUNT), STATUS_OK);
    assert_int_equal(result_add_row(result), STATUS_OK);
    result_set_int(result, 0, number);
    return result;
}

static void send_reply(struct port *socket, const struct wire_route *route, uint64_t id,
                       enum reply_status status, const char *text, int64_t number)
{
    struct message reply = {
        .kind = MESSAGE_REPLY,
        .reply = {.id = id,
                  .status = status,
                  .error = {.size = strlen(text), .bytes = text},
                  .expired_ns = status == REPLY_NO_DATA ? 5 : 0},
    };
    if (status == REPLY_OK)
        reply.reply.result = one_number(number);
    (void)send_message(socket, route, &reply);
    result_free(reply.reply.result);
}

static void answer(struct port *socket, const struct wire_route *route,
                   const struct message_query *query)
{
    static const struct {
        const char *metric;
        enum reply_status status;
    } failures[] = {
        {"invalid", REPLY_INVALID}, {"no_data", REPLY_NO_DATA},     {"denied", REPLY_DENIED},
        {"failed", REPLY_FAILED},   {"too_large", REPLY_TOO_LARGE},
    };
    const char *metric = query->query.metric;
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        if (strcmp(metric, failures[i].metric) == 0) {
            send_reply(socket, route, query->id, failures[i].status, "the\x1breason", 0);
            return;
        }
    }
    if (strcmp(metric, "silence") == 0)
        return;
    if (strcmp(metric, "noise") == 0) { // what a reader must pass over
        send_reply(socket, route, query->id - 1, REPLY_OK, "", -1);
        struct message credit = {.kind = MESSAGE_LIVE_CREDIT, .live_credit = {.protocol = 1}};
        (void)send_message(socket, route, &credit);
    }
    if (strcmp(metric, "garbage") == 0)
        (void)!port_send(socket, route, "\xff\xff", 2);
    if (strcmp(metric, "nothing") == 0)
        (void)!port_send(socket, route, "", 0);
    send_reply(socket, route, query->id, REPLY_OK, "", query->query.kind == QUERY_CLEAR ? 42 : 7);
}

// An audit is answered when so many pings have been, by `number`; with none it is
// never answered.
static void answer_audit(struct port *socket, const struct wire_route *route,
                         const struct message_query *query)
{
    if (query->query.kind == QUERY_AUDIT)
        collector.audit = query->id;
    else if (collector.audit && collector.pings_answered > 0) {
        send_reply(socket, route, query->id, REPLY_OK, "", -1);
        if (--collector.pings_answered == 0)
            send_reply(socket, route, collector.audit, REPLY_OK, "", 11);
    }
}

// Sends what credit and queue have room for; the rest waits for the next turn.
static void send_live(struct port *socket)
{
    bool sent = true;
    while (sent && collector.live_rows > 0 && atomic_load(&collector.credit) > 0) {
        struct message message = {
            .kind = MESSAGE_LIVE_RECORDS,
            .live_records = {.kind = RECORD_KIND_INFERENCE,
                             .missed = collector.live_missed,
                             .result = one_number(collector.live_rows)},
        };
        sent = send_message(socket, &collector.reader, &message);
        result_free(message.live_records.result);
        if (sent) {
            atomic_fetch_sub(&collector.credit, 1);
            collector.live_rows--;
        }
    }
}

static void send_unasked(struct port *socket)
{
    static unsigned char bytes[UNASKED_SIZE];
    while (atomic_load(&collector.unasked) > 0 &&
           port_send(socket, &collector.asker, bytes, sizeof bytes) == STATUS_OK)
        atomic_fetch_sub(&collector.unasked, 1);
}

static void take(struct port *socket, const struct wire_frame *frame)
{
    struct message message;
    if (codec_decode(&message, frame->bytes, frame->size, NULL) != STATUS_OK)
        return;
    if (message.kind == MESSAGE_QUERY)
        collector.asker = frame->route;
    if (message.kind == MESSAGE_QUERY && collector.lost > 0) {
        collector.lost--;
        port_hang_up(socket);
    } else if (message.kind == MESSAGE_QUERY &&
               (message.query.query.kind == QUERY_AUDIT || collector.audit))
        answer_audit(socket, &frame->route, &message.query);
    else if (message.kind == MESSAGE_QUERY)
        answer(socket, &frame->route, &message.query);
    if (message.kind == MESSAGE_LIVE_CREDIT) {
        atomic_fetch_add(&collector.credit, message.live_credit.messages);
        atomic_fetch_add(&collector.credit_messages, 1);
        collector.reader = frame->route;
    }
    message_free(&message);
}

static void *serve(void *context)
{
    static const enum address_service services[] = {ADDRESS_QUERY, ADDRESS_ADMIN, ADDRESS_LIVE};
    (void)context;
    struct listener *listener;
    struct address address;
    struct port *sockets[COUNT_OF(services)];
    assert_int_equal(listener_new(&listener, NULL), STATUS_OK);
    assert_int_equal(address_parse(&address, collector.address, NULL), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(services); i++) {
        char endpoint[ADDRESS_TEXT_SIZE];
        const struct wire_listen listen = {.service = services[i]};
        assert_int_equal(port_open(&sockets[i], listener,
                                   address_endpoint(endpoint, &address, services[i]), &listen,
                                   NULL),
                         STATUS_OK);
    }
    while (!atomic_load(&collector.stop)) {
        uint32_t ready;
        port_wait(sockets, COUNT_OF(services), -1, (int64_t)(SECOND_NS / 100), &ready);
        for (size_t i = 0; i < COUNT_OF(services); i++) {
            struct wire_frame frame;
            while (port_receive(sockets[i], &frame) == STATUS_OK) {
                take(sockets[i], &frame);
                port_release(&frame);
            }
        }
        send_unasked(sockets[0]);
        send_live(sockets[COUNT_OF(services) - 1]);
    }
    for (size_t i = 0; i < COUNT_OF(services); i++)
        port_close(sockets[i]);
    listener_free(listener);
    return NULL;
}

static void start(void)
{
    atomic_store(&collector.stop, false);
    assert_int_equal(pthread_create(&collector.thread, NULL, serve, NULL), 0);
    collector.runs = true;
}

static void stop(void)
{
    atomic_store(&collector.stop, true);
    assert_int_equal(pthread_join(collector.thread, NULL), 0);
    collector.runs = false;
}

// A folder for the collector, which a test starts.
TEST_FIXTURE(set_up)
{
    const char *tmp = getenv("TMPDIR");
    collector = (struct collector){.stop = false};
    (void)snprintf(collector.folder, sizeof collector.folder, "%s/inferstat-remote-XXXXXX",
                   tmp && strlen(tmp) < 20 ? tmp : "/tmp");
    assert_non_null(mkdtemp(collector.folder));
    (void)snprintf(collector.address, sizeof collector.address, "ipc://%s", collector.folder);
    return 0;
}

TEST_FIXTURE(tear_down)
{
    static const char *const names[] = {"query", "admin", "live"};
    if (collector.runs)
        stop();
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        (void)unlink(format_text("%s/%s", collector.folder, names[i]));
    }
    assert_int_equal(rmdir(collector.folder), 0);
    return 0;
}

static struct remote *open_remote(uint64_t timeout_ns)
{
    struct remote *remote = NULL;
    struct remote_target target = {.collector = collector.address, .timeout_ns = timeout_ns};
    assert_int_equal(remote_open(&remote, &target, NULL), STATUS_OK);
    return remote;
}

// ---- Queries ----------------------------------------------------------------------

static enum status ask(struct remote *remote, const char *metric, enum query_kind kind,
                       int64_t *number, struct error *err)
{
    struct query query = {.kind = kind};
    (void)snprintf(query.metric, sizeof query.metric, "%s", metric);
    struct result *result;
    enum status status = remote_query(remote, &query, &result, err);
    if (status != STATUS_OK)
        return status;
    *number = result_integer(result, 0, "cleared", -100);
    result_free(result);
    return STATUS_OK;
}

TEST_CASE(test_answers)
{
    static const struct {
        const char *metric;
        enum status status;
    } cases[] = {
        {"", STATUS_OK},
        {"noise", STATUS_OK},
        {"invalid", STATUS_INVALID},
        {"no_data", STATUS_NO_DATA},
        {"denied", STATUS_DENIED},
        {"failed", STATUS_IO},
        {"too_large", STATUS_FULL},
        {"garbage", STATUS_CORRUPT},
        {"nothing", STATUS_CORRUPT},
        {"", STATUS_OK},
        {"noise", STATUS_OK},
    };
    start();
    struct remote *remote = open_remote(patience_ns);
    assert_string_equal(remote_name(remote), collector.address);
    assert_false(remote_is_file(remote));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct error err = {0};
        int64_t number = 0;
        assert_int_equal(ask(remote, cases[i].metric, QUERY_AVERAGE, &number, &err),
                         cases[i].status);
        if (cases[i].status == STATUS_OK)
            assert_int_equal(number, 7);
        else if (cases[i].status == STATUS_CORRUPT)
            assert_non_null(strstr(err.text, "cannot be read"));
        else // what the other side says is shown as text
            assert_string_equal(err.text, "the\\x1Breason");
        assert_int_equal(err.expired_ns, cases[i].status == STATUS_NO_DATA ? 5 : 0);
    }
    int64_t cleared = 0;
    assert_int_equal(ask(remote, "", QUERY_CLEAR, &cleared, NULL), STATUS_OK);
    assert_int_equal(cleared, 42);
    remote_close(remote);
}

// A slow answer is waited for as long as the collector answers something else.
TEST_CASE(test_a_slow_answer)
{
    collector.pings_answered = 4;
    start();
    struct remote *remote = open_remote(2 * SECOND_NS / 5);
    struct error err = {0};
    int64_t number = 0;
    const uint64_t began_ns = clock_monotonic_ns();
    assert_int_equal(ask(remote, "", QUERY_AUDIT, &number, &err), STATUS_OK);
    assert_int_equal(number, 11);
    assert_true(clock_monotonic_ns() - began_ns >= 4 * SECOND_NS / 5); // four half times
    // No ping is answered from here on: it gives up long before an audit's time.
    assert_int_equal(ask(remote, "", QUERY_AUDIT, &number, &err), STATUS_UNREACHABLE);
    assert_true(clock_monotonic_ns() - began_ns < 60 * SECOND_NS);
    remote_close(remote);
}

// A connection that ends before the answer: what may be done twice is sent again, once; of the rest
// the asker learns without waiting.
TEST_CASE(test_a_lost_answer)
{
    static const struct {
        enum query_kind kind;
        unsigned lost;
        enum status status;
    } cases[] = {{QUERY_AVERAGE, 1, STATUS_OK},
                 {QUERY_AUTHORIZE, 1, STATUS_OK},
                 {QUERY_AVERAGE, 2, STATUS_UNREACHABLE},
                 {QUERY_REVOKE, 1, STATUS_UNREACHABLE}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        collector.lost = cases[i].lost;
        start();
        struct remote *remote = open_remote(60 * SECOND_NS);
        struct error err = {0};
        int64_t number = 0;
        const uint64_t began_ns = clock_monotonic_ns();
        assert_int_equal(ask(remote, "", cases[i].kind, &number, &err), cases[i].status);
        assert_true(clock_monotonic_ns() - began_ns < 20 * SECOND_NS);
        if (cases[i].status != STATUS_OK)
            assert_non_null(strstr(err.text, "was lost"));
        remote_close(remote);
        stop();
    }
}

TEST_CASE(test_silence)
{
    start();
    struct remote *remote = open_remote(brief_ns);
    struct error err = {0};
    int64_t number = 0;
    assert_int_equal(ask(remote, "silence", QUERY_AVERAGE, &number, &err), STATUS_UNREACHABLE);
    assert_non_null(strstr(err.text, collector.address));
    assert_non_null(strstr(err.text, "within 100.0ms"));
    remote_close(remote);

    // The next query is not spoilt by the one before.
    remote = open_remote(2 * SECOND_NS);
    assert_int_equal(ask(remote, "silence", QUERY_AVERAGE, &number, &err), STATUS_UNREACHABLE);
    assert_int_equal(ask(remote, "", QUERY_AVERAGE, &number, &err), STATUS_OK);
    assert_int_equal(number, 7);
    remote_close(remote);
}

// A folder that may not be entered is said to be so, at once.  Root, who may
// enter any, becomes somebody else for the question.
TEST_CASE(test_permission)
{
    enum { NOBODY = 65534 };
    const bool is_root = geteuid() == 0;
    assert_int_equal(chmod(collector.folder, 0), 0);
    if (is_root)
        assert_int_equal(setegid(NOBODY) | seteuid(NOBODY), 0);
    struct remote *remote = NULL;
    struct remote_target target = {.collector = collector.address, .timeout_ns = patience_ns};
    struct error err;
    const enum status status = remote_open(&remote, &target, &err);
    if (is_root)
        assert_int_equal(seteuid(0) | setegid(0), 0);
    assert_int_equal(status, STATUS_DENIED);
    assert_non_null(strstr(err.text, "permission denied"));
    assert_int_equal(chmod(collector.folder, 0700), 0);
}

TEST_CASE(test_nobody_then_somebody)
{
    struct remote *remote = open_remote(brief_ns);
    int64_t number = 0;
    assert_int_equal(ask(remote, "", QUERY_PING, &number, NULL), STATUS_UNREACHABLE);
    remote_close(remote);

    remote = open_remote(patience_ns);
    start();
    assert_int_equal(ask(remote, "", QUERY_PING, &number, NULL), STATUS_OK);
    stop(); // and back again, on the same remote
    start();
    assert_int_equal(ask(remote, "", QUERY_PING, &number, NULL), STATUS_OK);
    remote_close(remote);
}

TEST_CASE(test_refusals)
{
    struct remote *remote = NULL;
    struct error err = {0};
    struct remote_target target = {.collector = "carrier-pigeon://coop"};
    assert_int_equal(remote_open(&remote, &target, &err), STATUS_INVALID);
    target = (struct remote_target){.db = "/nonexistent/store.db"};
    assert_int_equal(remote_open(&remote, &target, &err), STATUS_NOT_FOUND);

    // Nonsense is refused before anybody is asked.
    target = (struct remote_target){.collector = "ipc:///nonexistent"};
    assert_int_equal(remote_open(&remote, &target, &err), STATUS_OK);
    struct query query = {.kind = QUERY_KIND_COUNT};
    struct result *result;
    assert_int_equal(remote_query(remote, &query, &result, &err), STATUS_INVALID);
    remote_close(remote);
    remote_close(NULL);
}

// The address: the target's own, the environment's, the default.
TEST_CASE(test_address)
{
    char inside[96];
    const char *folder = collector.folder;
    (void)snprintf(inside, sizeof inside, "ipc://%s/inferstat", folder);
    const struct {
        const char *collector, *environment, *runtime, *name;
    } cases[] = {
        {"ipc:///a", "ipc:///b", folder, "ipc:///a"},
        {NULL, "ipc:///b", folder, "ipc:///b"},
        {NULL, "", folder, inside},
        {NULL, NULL, folder, inside},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)unsetenv("INFERSTAT_COLLECTOR");
        (void)unsetenv("XDG_RUNTIME_DIR");
        if (cases[i].environment)
            (void)setenv("INFERSTAT_COLLECTOR", cases[i].environment, 1);
        if (cases[i].runtime)
            (void)setenv("XDG_RUNTIME_DIR", cases[i].runtime, 1);
        struct remote *remote;
        struct remote_target target = {.collector = cases[i].collector};
        assert_int_equal(remote_open(&remote, &target, NULL), STATUS_OK);
        assert_string_equal(remote_name(remote), cases[i].name);
        remote_close(remote);
    }
    (void)unsetenv("INFERSTAT_COLLECTOR");
    (void)unsetenv("XDG_RUNTIME_DIR");
}

enum { MANY = 500 }; // more than any credit given at once

TEST_CASE(test_live)
{
    collector.live_rows = MANY;
    collector.live_missed = 3;
    struct remote_target target = {.collector = collector.address};
    struct remote *live;
    struct error err = {0};
    assert_int_equal(remote_open(&live, &target, &err), STATUS_OK);
    assert_int_equal(remote_subscribe(live, 0, REMOTE_LIVE_RECORDS, &err), STATUS_OK);

    enum record_kind kind;
    struct result *result;
    uint64_t missed;
    assert_int_equal(remote_live_next(live, brief_ns, -1, &kind, &result, &missed, &err),
                     STATUS_TIMEOUT);
    start();
    for (int i = MANY; i > 0; i--) {
        assert_int_equal(remote_live_next(live, patience_ns, -1, &kind, &result, &missed, &err),
                         STATUS_OK);
        assert_int_equal(kind, RECORD_KIND_INFERENCE);
        assert_int_equal(missed, 3);
        assert_int_equal(result_integer(result, 0, "cleared", -1), i);
        result_free(result);
        // What comes during a query comes afterwards.
        int64_t number = 0;
        if (i % 20 == 0)
            assert_int_equal(ask(live, "", QUERY_AVERAGE, &number, NULL), STATUS_OK);
    }
    assert_true(atomic_load(&collector.credit_messages) >= MANY / 64);

    // A restarted collector, which knows of no subscription, counts anew.
    stop();
    collector.live_rows = 1;
    collector.live_missed = 1;
    atomic_store(&collector.credit, 0);
    start();
    bool has_records = false, is_told = false; // in either order
    while (!has_records || !is_told) {
        enum status status = remote_live_next(live, patience_ns, -1, &kind, &result, &missed, &err);
        has_records = has_records || status == STATUS_OK;
        is_told = is_told || status == STATUS_UNREACHABLE;
        assert_true(status == STATUS_OK || status == STATUS_UNREACHABLE);
        if (status == STATUS_OK)
            result_free(result);
    }
    assert_int_equal(missed, 4);
    remote_close(live);

    // This collector knows no readers that want ids only: its records are news all
    // the same.
    stop();
    collector.live_rows = 2;
    atomic_store(&collector.credit, 0);
    start();
    assert_int_equal(remote_open(&live, &target, &err), STATUS_OK);
    assert_int_equal(remote_subscribe(live, 0, REMOTE_LIVE_NOTIFICATIONS, &err), STATUS_OK);
    assert_int_equal(remote_live_next(live, patience_ns, -1, &kind, &result, &missed, &err),
                     STATUS_OK);
    assert_int_equal(kind, RECORD_KIND_INFERENCE);
    assert_null(result);
    remote_close(live);
}

// Shakes hands with the reader and then breaks the protocol.
static void *breach(void *listening)
{
    static const char ready[] = "\4\x1c\5READY\13Socket-Type\0\0\0\6ROUTER";
    unsigned char greeting[64] = {0xff, [9] = 0x7f, [10] = 3, [12] = 'N', 'U', 'L', 'L'};
    const int fd = accept(*(int *)listening, NULL, NULL);
    (void)!send(fd, greeting, sizeof greeting, MSG_NOSIGNAL);
    (void)!send(fd, ready, sizeof ready - 1, MSG_NOSIGNAL);
    (void)!recv(fd, greeting, sizeof greeting, MSG_WAITALL);
    (void)!send(fd, "\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9, MSG_NOSIGNAL);
    while (recv(fd, greeting, sizeof greeting, 0) > 0) {
        // Until the reader closes the connection.
    }
    (void)close(fd);
    return NULL;
}

// libzmq does not connect again after that, but the reader does.
TEST_CASE(test_live_after_a_breach)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s/live", collector.folder);
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listening, (const struct sockaddr *)&name, sizeof name), 0);
    assert_int_equal(listen(listening, 1), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, breach, &listening), 0);

    struct remote_target target = {.collector = collector.address};
    struct remote *live;
    struct result *result;
    enum record_kind kind;
    uint64_t missed;
    assert_int_equal(remote_open(&live, &target, NULL), STATUS_OK);
    assert_int_equal(remote_subscribe(live, 0, REMOTE_LIVE_NOTIFICATIONS, NULL), STATUS_OK);
    assert_int_equal(remote_live_next(live, SECOND_NS, -1, &kind, &result, &missed, NULL),
                     STATUS_TIMEOUT);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(listening);
    collector.live_rows = 1;
    start();
    assert_int_equal(remote_live_next(live, patience_ns, -1, &kind, &result, &missed, NULL),
                     STATUS_OK);
    remote_close(live);
}

static size_t memory_in_use(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

// What comes over a connection that is not used at the moment does not stay in memory.
TEST_CASE(test_unasked_messages)
{
    start();
    struct remote *remote = open_remote(patience_ns);
    int64_t number = 0;
    assert_int_equal(ask(remote, "", QUERY_AVERAGE, &number, NULL), STATUS_OK);
    assert_int_equal(remote_subscribe(remote, 0, REMOTE_LIVE_RECORDS, NULL), STATUS_OK);
    const size_t before = memory_in_use();
    atomic_store(&collector.unasked, UNASKED);
    const uint64_t until_ns = clock_monotonic_ns() + patience_ns;
    enum record_kind kind;
    struct result *none;
    uint64_t missed;
    while (atomic_load(&collector.unasked) > 0 && clock_monotonic_ns() < until_ns)
        assert_int_equal(remote_live_next(remote, brief_ns, -1, &kind, &none, &missed, NULL),
                         STATUS_TIMEOUT);
    assert_int_equal(atomic_load(&collector.unasked), 0);
    assert_int_equal(remote_live_next(remote, brief_ns, -1, &kind, &none, &missed, NULL),
                     STATUS_TIMEOUT);
    assert_true(memory_in_use() < before + (size_t)UNASKED / 4 * UNASKED_SIZE);
    assert_int_equal(ask(remote, "", QUERY_AVERAGE, &number, NULL), STATUS_OK);
    remote_close(remote);
}

TEST_CASE(test_live_wakes)
{
    int wake[2];
    assert_int_equal(pipe(wake), 0);
    assert_int_equal(write(wake[1], "", 1), 1);
    struct remote_target target = {.collector = collector.address};
    struct remote *live;
    assert_int_equal(remote_open(&live, &target, NULL), STATUS_OK);
    assert_int_equal(remote_subscribe(live, 1, REMOTE_LIVE_RECORDS, NULL), STATUS_OK);
    enum record_kind kind;
    struct result *result;
    uint64_t missed;
    assert_int_equal(remote_live_next(live, patience_ns, wake[0], &kind, &result, &missed, NULL),
                     STATUS_CANCELLED);
    remote_close(live);
    (void)close(wake[0]);
    (void)close(wake[1]);
}

TEST_MAIN_EACH(set_up, tear_down, test_answers, test_a_slow_answer, test_a_lost_answer,
               test_silence, test_nobody_then_somebody, test_permission, test_refusals,
               test_address, test_live, test_live_after_a_breach, test_live_wakes,
               test_unasked_messages)
