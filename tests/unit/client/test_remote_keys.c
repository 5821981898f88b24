// A collector that asks for keys: who is let in, who is told what, and who gets in
// later.
#include "tests/support/test.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "client/remote/remote.h"
#include "common/sys/clock.h"
#include "common/wire/address.h"
#include "common/wire/codec.h"
#include "common/wire/keys.h"
#include "common/wire/listener/listener.h"
#include "tests/support/folder.h"

#define SECOND_NS UINT64_C(1000000000)

static struct {
    char folder[FOLDER_PATH_SIZE];
    char key_file[FOLDER_PATH_SIZE]; // the client's
    char address[64];
    struct wire_keypair server, client;
    pthread_t thread;
    sem_t ready; // posted when the sockets are bound
    atomic_bool stop, admits;
    atomic_uint asked; // how often `admit` was
} rig;

static bool admit(void *context, enum address_service service,
                  const unsigned char key[WIRE_KEY_SIZE])
{
    (void)context;
    (void)service;
    atomic_fetch_add(&rig.asked, 1);
    return atomic_load(&rig.admits) && memcmp(key, rig.client.public_key, WIRE_KEY_SIZE) == 0;
}

static struct result *one_number(void)
{
    struct result *result;
    assert_int_equal(result_new(&result), STATUS_OK);
    assert_int_equal(result_add_column(result, "n", UNIT_COUNT), STATUS_OK);
    assert_int_equal(result_add_row(result), STATUS_OK);
    result_set_int(result, 0, 7);
    return result;
}

static void answer(struct port *socket, const struct wire_frame *frame)
{
    struct message asked, reply;
    if (codec_decode(&asked, frame->bytes, frame->size, NULL) != STATUS_OK)
        return;
    if (asked.kind == MESSAGE_QUERY)
        reply = (struct message){.kind = MESSAGE_REPLY,
                                 .reply = {.id = asked.query.id, .result = one_number()}};
    else
        reply = (struct message){
            .kind = MESSAGE_LIVE_RECORDS,
            .live_records = {.kind = RECORD_KIND_INFERENCE, .result = one_number()}};
    unsigned char *bytes;
    size_t size;
    assert_int_equal(codec_encode(&bytes, &size, &reply, NULL), STATUS_OK);
    (void)!port_send(socket, &frame->route, bytes, size);
    free(bytes);
    result_free(asked.kind == MESSAGE_QUERY ? reply.reply.result : reply.live_records.result);
    message_free(&asked);
}

// Binds query and live of the first ports that are free.
static void bind_all(struct port **sockets, struct listener *listener)
{
    static const enum address_service services[] = {ADDRESS_QUERY, ADDRESS_LIVE};
    const struct wire_guard guard = {.keys = rig.server, .admit = admit};
    unsigned port = 20000 + (unsigned)getpid() % 20000;
    enum status status = STATUS_BUSY;
    for (int tries = 0; tries < 200 && status == STATUS_BUSY; tries++, port += 4) {
        struct address address;
        (void)snprintf(rig.address, sizeof rig.address, "tcp://127.0.0.1:%u", port);
        assert_int_equal(address_parse(&address, rig.address, NULL), STATUS_OK);
        for (int i = 0; i < 2; i++) {
            char endpoint[ADDRESS_TEXT_SIZE];
            const struct wire_listen listen = {.service = services[i], .guard = &guard};
            port_close(sockets[i]);
            sockets[i] = NULL;
            status = port_open(&sockets[i], listener,
                               address_endpoint(endpoint, &address, services[i]), &listen, NULL);
            if (status != STATUS_OK)
                break;
        }
    }
    assert_int_equal(status, STATUS_OK);
}

static void *serve(void *context)
{
    (void)context;
    struct listener *listener;
    struct port *sockets[2] = {NULL, NULL};
    assert_int_equal(listener_new(&listener, NULL), STATUS_OK);
    bind_all(sockets, listener);
    (void)sem_post(&rig.ready);
    while (!atomic_load(&rig.stop)) {
        uint32_t bits;
        port_wait(sockets, 2, -1, (int64_t)(SECOND_NS / 100), &bits);
        for (int i = 0; i < 2; i++) {
            struct wire_frame frame;
            while (port_receive(sockets[i], &frame) == STATUS_OK) {
                if (frame.peer.kind == PEER_KEY && atomic_load(&rig.admits))
                    answer(sockets[i], &frame);
                port_release(&frame);
            }
        }
    }
    port_close(sockets[0]);
    port_close(sockets[1]);
    listener_free(listener);
    return NULL;
}

TEST_FIXTURE(set_up)
{
    struct error err = {0};
    folder_make(rig.folder);
    (void)folder_path(rig.key_file, rig.folder, "key");
    if (keys_create(&rig.client, rig.key_file, "test", &err) != STATUS_OK ||
        wire_keypair_new(&rig.server, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    atomic_store(&rig.stop, false);
    atomic_store(&rig.admits, true);
    atomic_store(&rig.asked, 0);
    assert_int_equal(sem_init(&rig.ready, 0, 0), 0);
    assert_int_equal(pthread_create(&rig.thread, NULL, serve, NULL), 0);
    assert_int_equal(sem_wait(&rig.ready), 0);
    return 0;
}

TEST_FIXTURE(tear_down)
{
    atomic_store(&rig.stop, true);
    assert_int_equal(pthread_join(rig.thread, NULL), 0);
    assert_int_equal(sem_destroy(&rig.ready), 0);
    folder_remove(rig.folder);
    return 0;
}

static struct remote_target target_with(const char *server_key, uint64_t timeout_ns)
{
    return (struct remote_target){.collector = rig.address,
                                  .timeout_ns = timeout_ns,
                                  .trust = {.key_file = rig.key_file, .server_key = server_key}};
}

static struct remote *open_remote(const char *server_key, uint64_t timeout_ns)
{
    struct remote *remote = NULL;
    struct error err = {0};
    const struct remote_target target = target_with(server_key, timeout_ns);
    expect_ok(remote_open(&remote, &target, &err), &err);
    assert_string_equal(remote_warning(remote), "");
    return remote;
}

static enum status ask(struct remote *remote, struct error *err)
{
    const struct query query = {.kind = QUERY_PING};
    struct result *result;
    enum status status = remote_query(remote, &query, &result, err);
    if (status != STATUS_OK)
        return status;
    assert_int_equal(result_integer(result, 0, "n", 0), 7);
    result_free(result);
    return STATUS_OK;
}

// Asks until it is answered, twenty seconds at most.
static void ask_until_answered(struct remote *remote)
{
    struct error err = {0};
    const uint64_t until_ns = clock_monotonic_ns() + 20 * SECOND_NS;
    while (ask(remote, &err) != STATUS_OK) {
        if (clock_monotonic_ns() > until_ns)
            fail_msg("%s", err.text);
        clock_sleep_until_ns(clock_monotonic_ns() + SECOND_NS / 20);
    }
}

TEST_CASE(test_with_the_right_keys)
{
    char key[WIRE_KEY_TEXT_SIZE];
    struct remote *remote = open_remote(wire_key_text(key, rig.server.public_key), 20 * SECOND_NS);
    struct error err = {0};
    assert_int_equal(ask(remote, &err), STATUS_OK);
    const unsigned asked = atomic_load(&rig.asked); // about the connection, not about messages
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask(remote, &err), STATUS_OK);
    remote_close(remote);
    assert_int_equal(atomic_load(&rig.asked), asked);

    struct remote *live = NULL;
    const struct remote_target target = target_with(key, 0);
    assert_int_equal(remote_open(&live, &target, &err), STATUS_OK);
    assert_int_equal(remote_subscribe(live, 0, REMOTE_LIVE_RECORDS, &err), STATUS_OK);
    enum record_kind kind;
    struct result *result = NULL;
    uint64_t missed;
    assert_int_equal(remote_live_next(live, 20 * SECOND_NS, -1, &kind, &result, &missed, &err),
                     STATUS_OK);
    result_free(result);
    remote_close(live);
}

TEST_CASE(test_a_key_that_is_refused_and_then_admitted)
{
    char key[WIRE_KEY_TEXT_SIZE], own[WIRE_KEY_TEXT_SIZE];
    struct remote *remote = open_remote(wire_key_text(key, rig.server.public_key), 20 * SECOND_NS);
    struct error err = {0};
    atomic_store(&rig.admits, false);
    const uint64_t began_ns = clock_monotonic_ns();
    assert_int_equal(ask(remote, &err), STATUS_DENIED);
    assert_true(clock_monotonic_ns() - began_ns < 15 * SECOND_NS); // it is told, not waited for
    assert_non_null(strstr(err.text, "it refuses this key"));
    assert_non_null(strstr(err.text, wire_key_text(own, rig.client.public_key)));
    assert_non_null(strstr(err.text, "--role reader"));
    // Within its back-off it does not ask the collector again.
    const unsigned asked = atomic_load(&rig.asked);
    assert_int_equal(ask(remote, &err), STATUS_DENIED);
    assert_int_equal(atomic_load(&rig.asked), asked);
    atomic_store(&rig.admits, true);
    ask_until_answered(remote);
    remote_close(remote);
}

TEST_CASE(test_live_records_after_a_refusal)
{
    char key[WIRE_KEY_TEXT_SIZE];
    struct remote *live = NULL;
    struct error err = {0};
    const struct remote_target target = target_with(wire_key_text(key, rig.server.public_key), 0);
    atomic_store(&rig.admits, false);
    assert_int_equal(remote_open(&live, &target, &err), STATUS_OK);
    assert_int_equal(remote_subscribe(live, 0, REMOTE_LIVE_RECORDS, &err), STATUS_OK);
    enum record_kind kind;
    struct result *result = NULL;
    uint64_t missed;
    assert_int_equal(remote_live_next(live, SECOND_NS / 2, -1, &kind, &result, &missed, &err),
                     STATUS_TIMEOUT);
    atomic_store(&rig.admits, true);
    assert_int_equal(remote_live_next(live, 20 * SECOND_NS, -1, &kind, &result, &missed, &err),
                     STATUS_OK);
    result_free(result);
    remote_close(live);
}

TEST_CASE(test_another_key_of_the_collector)
{
    struct wire_keypair other;
    char key[WIRE_KEY_TEXT_SIZE];
    struct error err = {0};
    assert_int_equal(wire_keypair_new(&other, &err), STATUS_OK);
    struct remote *remote = open_remote(wire_key_text(key, other.public_key), SECOND_NS / 2);
    assert_int_equal(ask(remote, &err), STATUS_UNREACHABLE);
    if (!strstr(err.text, "another key than the one known here"))
        fail_msg("%s", err.text);
    remote_close(remote);
    assert_int_equal(atomic_load(&rig.asked), 0);

    // While the collector's key is changed both are known here.
    char path[FOLDER_PATH_SIZE], right[WIRE_KEY_TEXT_SIZE];
    (void)write_text(
        folder_path(path, rig.folder, "servers"),
        format_text("%s old\n%s new\n", key, wire_key_text(right, rig.server.public_key)));
    remote = open_remote(path, 20 * SECOND_NS);
    ask_until_answered(remote);
    remote_close(remote);
}

TEST_CASE(test_without_keys)
{
    struct error err = {0};
    struct remote *remote = open_remote(NULL, SECOND_NS / 2); // loopback: plain
    assert_int_equal(ask(remote, &err), STATUS_UNREACHABLE);
    remote_close(remote);

    char key[WIRE_KEY_TEXT_SIZE];
    struct remote_target target = target_with(wire_key_text(key, rig.server.public_key), SECOND_NS);
    target.trust.key_file = "/nonexistent/key";
    assert_int_equal(remote_open(&remote, &target, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nonexistent/key"));
    target = (struct remote_target){.collector = "tcp://192.0.2.7:5571"};
    assert_int_equal(remote_open(&remote, &target, &err), STATUS_DENIED);
    target.trust.insecure = true;
    assert_int_equal(remote_open(&remote, &target, &err), STATUS_OK);
    assert_string_not_equal(remote_warning(remote), "");
    remote_close(remote);
}

int main(void)
{
    (void)unsetenv("INFERSTAT_SERVER_KEY");
    (void)unsetenv("INFERSTAT_KEY");
    (void)setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    return TEST_RUN_EACH(
        set_up, tear_down, test_with_the_right_keys, test_a_key_that_is_refused_and_then_admitted,
        test_live_records_after_a_refusal, test_another_key_of_the_collector, test_without_keys);
}
