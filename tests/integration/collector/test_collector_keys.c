// inferstatd with keys, over TCP: who may do what, for how long, and whose runs are
// whose.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"
#include "common/wire/keys.h"
#include "common/store/schema/database_open.h"
#include "tests/integration/collector/collector_fixture.h"

// Who takes part; the stranger is not in the list.
enum who { PRODUCER, OTHER, READER, ADMIN, STRANGER, WHO_COUNT };

static const struct {
    const char *name, *roles;
} about[WHO_COUNT] = {
    [PRODUCER] = {"worker-1", "producer"}, [OTHER] = {"worker-2", "producer"},
    [READER] = {"ann", "reader"},          [ADMIN] = {"root", "admin"},
    [STRANGER] = {"nobody", "producer"},
};

static char list[FOLDER_PATH_SIZE], key_file[FOLDER_PATH_SIZE];
static unsigned port;
static struct wire_keypair server, pairs[WHO_COUNT];
static struct wire_context *context;

static void write_line(FILE *file, enum who who, const char *roles, const char *more)
{
    char text[WIRE_KEY_TEXT_SIZE];
    (void)fprintf(file, "%s %s %s%s\n", wire_key_text(text, pairs[who].public_key), roles,
                  about[who].name, more);
}

// Those of the table whose bit is set.
static void write_list(unsigned members)
{
    char name[FOLDER_PATH_SIZE];
    FILE *file = fopen(folder_path(name, folder, "list.new"), "w");
    assert_non_null(file);
    (void)fprintf(file, "# who may connect\n");
    for (unsigned i = 0; i < WHO_COUNT; i++)
        if (members >> i & 1)
            write_line(file, (enum who)i, about[i].roles, "");
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(name, 0640), 0);
    assert_int_equal(rename(name, list), 0);
}

enum { EVERYBODY = 1U << STRANGER }; // but those beyond
static const unsigned everybody = EVERYBODY - 1;

static void start(void)
{
    port = 20000 + (unsigned)getpid() % 20000;
    for (int tries = 0; tries < 20; tries++, port += 7) {
        char tcp[64];
        (void)snprintf(tcp, sizeof tcp, "tcp://127.0.0.1:%u", port);
        const char *const argv[] = {INFERSTATD, "--db",  path,    "--listen", tcp,
                                    "--listen", address, "--key", key_file,   "--authorized-keys",
                                    list,       NULL};
        if (daemon_start(&collector, argv))
            return;
        (void)daemon_end(&collector, 0);
    }
    fail_msg("%s", collector.output);
}

TEST_FIXTURE(set_up)
{
    struct error err = {0};
    collector_set_up(state);
    (void)folder_path(list, folder, "keys");
    (void)folder_path(key_file, folder, "server.key");
    if (keys_create(&server, key_file, "test", &err) != STATUS_OK ||
        wire_context_new(&context, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    for (unsigned i = 0; i < WHO_COUNT; i++)
        expect_ok(wire_keypair_new(&pairs[i], &err), &err);
    write_list(everybody);
    start();
    return 0;
}

TEST_FIXTURE(tear_down)
{
    wire_context_free(context);
    return collector_tear_down(state);
}

// How often something was refused for a reason; waits until it is `at_least`.
static void await_refusals(const char *reason, int64_t at_least)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT count FROM refusal WHERE reason = '%s'", reason);
    for (int i = 0; i < 100 && integer(sql) < at_least; i++)
        clock_sleep_until_ns(clock_monotonic_ns() + 100000000);
    assert_true(integer(sql) >= at_least);
}

static void connect_as(struct producer *peer, enum who who, enum address_service service,
                       unsigned run)
{
    struct wire_pass pass = {.own = pairs[who]};
    memcpy(pass.server_key, server.public_key, sizeof pass.server_key);
    producer_open_in(peer, context, format_text("tcp://127.0.0.1:%u", port + (unsigned)service),
                     &pass, run);
}

// Whether the server lets them in: the handshake's end is waited for.
static bool is_let_in(struct producer *peer)
{
    for (int i = 0; i < 500; i++) {
        uint32_t ready;
        const enum wire_handshake handshake = wire_handshake(peer->socket);
        if (handshake == WIRE_HANDSHAKE_DONE || handshake == WIRE_HANDSHAKE_REFUSED)
            return handshake == WIRE_HANDSHAKE_DONE;
        wire_wait(&peer->socket, 1, -1, 20000000, &ready);
    }
    fail_msg("no end of the handshake");
    return false;
}

static void hello(struct producer *peer)
{
    peer->error[0] = '\0';
    producer_hello(peer, NULL, 0);
    assert_true(producer_await(peer, 5000));
}

static void store_records(struct producer *peer, uint64_t first, uint64_t last)
{
    producer_batch(peer, 0, first, &records[first - 1], (size_t)(last - first + 1));
    assert_true(producer_await_next(peer, 0, last + 1));
    assert_string_equal(peer->error, "");
}

// Asks and takes the answer; the message is to be freed.
static void ask(struct producer *peer, const struct query *query, struct message *message)
{
    const struct message question = {.kind = MESSAGE_QUERY,
                                     .query = {.id = 42, .protocol = 2, .query = *query}};
    struct wire_bytes frame;
    uint32_t ready = 0;
    producer_message(peer, &question);
    wire_wait(&peer->socket, 1, -1, INT64_C(5000000000), &ready);
    assert_int_equal(wire_receive(peer->socket, &frame), STATUS_OK);
    assert_int_equal(codec_decode(message, frame.bytes, frame.size, NULL), STATUS_OK);
    assert_int_equal(message->kind, MESSAGE_REPLY);
}

static enum reply_status ask_status(struct producer *peer, const struct query *query)
{
    struct message message;
    ask(peer, query, &message);
    const enum reply_status status = message.reply.status;
    message_free(&message);
    return status;
}

static enum reply_status ask_as(enum who who, enum address_service service,
                                const struct query *query)
{
    struct producer asker;
    connect_as(&asker, who, service, 1);
    const enum reply_status status = ask_status(&asker, query);
    producer_close(&asker);
    return status;
}

static struct query authorize(enum who who, uint32_t roles, const char *name)
{
    struct query query = {.kind = QUERY_AUTHORIZE, .key.roles = roles};
    (void)wire_key_text(query.key.text, pairs[who].public_key);
    (void)snprintf(query.key.name, sizeof query.key.name, "%s", name);
    return query;
}

static struct query revocation(const char *name)
{
    struct query query = {.kind = QUERY_REVOKE};
    (void)snprintf(query.key.text, sizeof query.key.text, "%s", name);
    return query;
}

static const struct query ping = {.kind = QUERY_PING};
static const struct query keys = {.kind = QUERY_KEYS};

TEST_CASE(test_roles_open_doors)
{
    static const bool open[WHO_COUNT][ADDRESS_SERVICES] = {
        // ingest, query, live, admin
        [PRODUCER] = {true, false, false, false},  [OTHER] = {true, false, false, false},
        [READER] = {false, true, true, false},     [ADMIN] = {true, true, true, true},
        [STRANGER] = {false, false, false, false},
    };
    int64_t refused = 0;
    for (unsigned who = 0; who < WHO_COUNT; who++) {
        for (unsigned service = 0; service < ADDRESS_SERVICES; service++) {
            struct producer peer;
            connect_as(&peer, (enum who)who, (enum address_service)service, 1);
            if (is_let_in(&peer) != open[who][service])
                fail_msg("%s at %s", about[who].name,
                         address_service_name((enum address_service)service));
            refused += !open[who][service];
            producer_close(&peer);
        }
    }
    await_refusals("stranger", refused);
}

TEST_CASE(test_what_each_may_do)
{
    struct producer peer;
    connect_as(&peer, PRODUCER, ADDRESS_INGEST, 1);
    hello(&peer);
    assert_string_equal(peer.error, "");
    store_records(&peer, 1, 10);
    producer_close(&peer);
    assert_int_equal(integer("SELECT count(*) FROM inference"), 10);
    assert_int_equal(integer("SELECT length(key) FROM run"), 40);
    const struct query clear = {.kind = QUERY_CLEAR};
    assert_int_equal(ask_as(READER, ADDRESS_QUERY, &ping), REPLY_OK);
    const struct query silence = {.kind = QUERY_ALERT_EDIT,
                                  .alert = {.edit = QUERY_ALERT_SILENCE, .for_ns = 1, .rule = "*"}};
    assert_int_equal(ask_as(READER, ADDRESS_QUERY, &clear), REPLY_DENIED);
    assert_int_equal(ask_as(READER, ADDRESS_QUERY, &silence), REPLY_DENIED);
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &silence), REPLY_OK);
    assert_int_equal(ask_as(READER, ADDRESS_QUERY, &keys), REPLY_DENIED);
    assert_int_equal(ask_as(ADMIN, ADDRESS_QUERY, &keys), REPLY_DENIED); // at its own door only
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &keys), REPLY_OK);
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &ping), REPLY_OK);
    assert_int_equal(integer("SELECT count(*) FROM inference"), 10);
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &clear), REPLY_OK);
    assert_int_equal(integer("SELECT count(*) FROM inference"), 0);
    await_refusals("denied", 4);
}

// Who knows another server, or no CURVE at all, is nobody to talk to.
TEST_CASE(test_handshakes_that_fail)
{
    char endpoint[64];
    struct producer peer;
    struct wire_pass pass = {.own = pairs[PRODUCER]};
    memcpy(pass.server_key, pairs[OTHER].public_key, sizeof pass.server_key);
    (void)snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", port);
    producer_open_in(&peer, context, endpoint, &pass, 1);
    uint32_t ready;
    wire_wait(&peer.socket, 1, -1, 300000000, &ready);
    assert_int_not_equal(wire_handshake(peer.socket), WIRE_HANDSHAKE_DONE);
    producer_close(&peer);
    await_refusals("handshake", 1);
    const int64_t before = integer("SELECT count FROM refusal WHERE reason = 'handshake'");
    producer_open_in(&peer, context, endpoint, NULL, 1);
    wire_wait(&peer.socket, 1, -1, 300000000, &ready);
    await_refusals("handshake", before + 1);
    producer_close(&peer);
    assert_int_equal(integer("SELECT count(*) FROM run"), 0);
}

// By permission: the folder's sockets know no keys.
TEST_CASE(test_the_owner_goes_by_permission)
{
    struct producer owner;
    producer_open_in(&owner, context, format_text("%s/admin", address), NULL, 1);
    struct message message;
    ask(&owner, &keys, &message);
    assert_int_equal(message.reply.status, REPLY_OK);
    assert_int_equal(result_row_count(message.reply.result), STRANGER);
    message_free(&message);
    const struct query more = authorize(STRANGER, 1U << QUERY_ROLE_PRODUCER, "nobody");
    assert_int_equal(ask_status(&owner, &more), REPLY_OK);
    const struct query again = authorize(READER, 1U << QUERY_ROLE_READER, "nobody");
    assert_int_equal(ask_status(&owner, &again), REPLY_INVALID); // the name is taken
    producer_close(&owner);
    struct producer peer;
    connect_as(&peer, STRANGER, ADDRESS_INGEST, 1);
    hello(&peer);
    assert_string_equal(peer.error, "");
    producer_close(&peer);
    producer_open_in(&owner, context, format_text("%s/query", address), NULL, 1);
    assert_int_equal(ask_status(&owner, &keys), REPLY_DENIED);
    producer_close(&owner);
}

// Speaks until the connection is over, which it is in time; says whether it was told
// why before.
static bool is_told_and_cut_off(struct producer *peer)
{
    const uint64_t began_ns = clock_monotonic_ns();
    bool told = false;
    while (wire_handshake(peer->socket) == WIRE_HANDSHAKE_DONE) {
        assert_true(clock_monotonic_ns() - began_ns < UINT64_C(12000000000));
        peer->error[0] = '\0';
        struct message message = {.kind = MESSAGE_BATCH};
        memcpy(message.batch.run, peer->run, sizeof peer->run);
        size_t size = 0;
        unsigned char *bytes = NULL;
        assert_int_equal(codec_encode(&bytes, &size, &message, NULL), STATUS_OK);
        (void)!wire_send(peer->socket, bytes, size);
        free(bytes);
        if (producer_await(peer, 100))
            told |= strstr(peer->error, "ask an administrator") != NULL;
    }
    return told;
}

TEST_CASE(test_a_live_connection_is_revoked)
{
    struct producer peer, bystander;
    connect_as(&peer, PRODUCER, ADDRESS_INGEST, 1);
    connect_as(&bystander, OTHER, ADDRESS_INGEST, 2);
    hello(&peer);
    hello(&bystander);
    store_records(&peer, 1, 10);
    store_records(&bystander, 1, 10);
    const struct query away = revocation("worker-1");
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &away), REPLY_OK);
    producer_batch(&peer, 0, 11, &records[10], 5); // nothing of it is taken
    assert_true(producer_await(&peer, 5000));
    assert_non_null(strstr(peer.error, "no longer authorized"));
    assert_true(is_told_and_cut_off(&peer));
    assert_false(is_let_in(&peer));
    assert_int_equal(integer("SELECT max(number) FROM inference WHERE run = 1"), 10);
    await_refusals("revoked", 2);
    // Others are connected anew, and nothing is lost of them.
    while (producer_await(&bystander, 100)) {
        // What was under way.
    }
    hello(&bystander);
    store_records(&bystander, 11, 20);
    // Authorized again it goes on, without anybody's restart.
    const struct query back = authorize(PRODUCER, 1U << QUERY_ROLE_PRODUCER, "worker-1");
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &back), REPLY_OK);
    producer_close(&peer);
    connect_as(&peer, PRODUCER, ADDRESS_INGEST, 1);
    hello(&peer);
    assert_string_equal(peer.error, "");
    assert_int_equal(peer.next[0], 11);
    store_records(&peer, 11, 20);
    producer_close(&peer);
    producer_close(&bystander);
    assert_int_equal(integer("SELECT count(*) FROM inference"), 40);
}

// At its time a key is as one that is revoked, without anybody's command.
TEST_CASE(test_a_key_expires)
{
    struct producer peer;
    struct query query = authorize(PRODUCER, 1U << QUERY_ROLE_PRODUCER, "worker-1");
    query.key.expires_ns = clock_wall_ns() + INT64_C(6000000000);
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &query), REPLY_OK);
    connect_as(&peer, PRODUCER, ADDRESS_INGEST, 1);
    hello(&peer);
    store_records(&peer, 1, 10);
    (void)is_told_and_cut_off(&peer); // the connection may end before a message is refused
    assert_false(is_let_in(&peer));
    producer_close(&peer);
    assert_true(clock_wall_ns() >= query.key.expires_ns / 1000000000 * 1000000000);
    query.key.expires_ns = 0;
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &query), REPLY_OK);
    connect_as(&peer, PRODUCER, ADDRESS_INGEST, 1);
    hello(&peer);
    store_records(&peer, 11, 20);
    producer_close(&peer);
}

// Who did what, by the names of keys, is in the store.
TEST_CASE(test_acts_have_an_actor)
{
    const struct query query = authorize(STRANGER, 1U << QUERY_ROLE_PRODUCER, "worker-9");
    const struct query away = revocation("worker-9"), nobody = revocation("nobody");
    const struct query acts = {.kind = QUERY_ADMIN_LOG};
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &query), REPLY_OK);
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &away), REPLY_OK);
    assert_int_not_equal(ask_as(ADMIN, ADDRESS_ADMIN, &nobody), REPLY_OK);
    assert_int_not_equal(ask_as(READER, ADDRESS_QUERY, &acts), REPLY_OK);
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &acts), REPLY_OK);
    static const char *const sure[] = {
        "SELECT count(*) = 3 FROM admin WHERE actor = 'key root'",
        "SELECT count(*) = 1 FROM admin WHERE action = 'authorize' AND detail LIKE 'worker-9 %'"
        " AND outcome = 'ok'",
        "SELECT count(*) = 1 FROM admin WHERE action = 'revoke' AND detail = 'worker-9'"
        " AND outcome = 'ok'",
        "SELECT count(*) = 1 FROM admin WHERE action = 'revoke' AND detail = 'nobody'"
        " AND outcome LIKE '%no key and no name%'",
    };
    for (size_t i = 0; i < COUNT_OF(sure); i++)
        for (int tries = 0; integer(sure[i]) != 1; tries++) {
            assert_true(tries < 100);
            (void)clock_sleep_until_ns(clock_monotonic_ns() + 50000000);
        }
}

// By hand, in the file: within a second it is seen, and a slip of the hand changes
// nothing.
TEST_CASE(test_the_file_is_edited)
{
    struct producer reader;
    FILE *file = fopen(list, "a");
    assert_non_null(file);
    assert_true(fputs("nonsense\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(kill(collector.pid, SIGHUP), 0);
    connect_as(&reader, READER, ADDRESS_QUERY, 1);
    assert_int_equal(ask_status(&reader, &ping), REPLY_OK);
    write_list(everybody & ~(1U << READER));
    assert_true(is_told_and_cut_off(&reader) || !is_let_in(&reader));
    producer_close(&reader);
    connect_as(&reader, READER, ADDRESS_QUERY, 1);
    assert_false(is_let_in(&reader));
    producer_close(&reader);
    write_list(everybody);
    bool let_in = false;
    for (int i = 0; i < 50 && !let_in; i++) {
        clock_sleep_until_ns(clock_monotonic_ns() + 100000000);
        connect_as(&reader, READER, ADDRESS_QUERY, 1);
        let_in = is_let_in(&reader);
        producer_close(&reader);
    }
    assert_true(let_in);
}

TEST_CASE(test_a_role_is_taken_away)
{
    struct producer peer;
    connect_as(&peer, PRODUCER, ADDRESS_INGEST, 1);
    hello(&peer);
    const struct query less = authorize(PRODUCER, 1U << QUERY_ROLE_READER, "worker-1");
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &less), REPLY_OK);
    producer_batch(&peer, 0, 1, records, 5);
    assert_true(producer_await(&peer, 5000));
    assert_non_null(strstr(peer.error, "lacks the role"));
    assert_true(is_told_and_cut_off(&peer));
    producer_close(&peer);
    assert_int_equal(ask_as(PRODUCER, ADDRESS_QUERY, &ping), REPLY_OK);
    assert_int_equal(integer("SELECT count(*) FROM inference"), 0);
}

TEST_CASE(test_a_run_is_its_keys)
{
    struct producer peer, thief;
    connect_as(&peer, PRODUCER, ADDRESS_INGEST, 1);
    hello(&peer);
    store_records(&peer, 1, 10);
    connect_as(&thief, OTHER, ADDRESS_INGEST, 1); // the same run
    hello(&thief);
    assert_string_equal(thief.error, "this run belongs to another key");
    producer_batch(&thief, 0, 11, &records[10], 5);
    assert_true(producer_await(&thief, 5000));
    assert_string_equal(thief.error, "this run belongs to another key");
    producer_goodbye(&thief, NULL, 0);
    assert_true(producer_await(&thief, 5000));
    assert_false(thief.closed);
    producer_close(&thief);
    // Nor does it become somebody's without a key.
    producer_open_in(&thief, context, format_text("%s/ingest", address), NULL, 1);
    hello(&thief);
    assert_string_equal(thief.error, "this run belongs to another key");
    producer_close(&thief);
    store_records(&peer, 11, 20);
    producer_close(&peer);
    await_refusals("wrong_owner", 4);
    assert_int_equal(integer("SELECT count(*) FROM inference"), 20);
    assert_int_equal(integer("SELECT count(*) FROM run WHERE \"end\" = 0"), 1);
}

TEST_CASE(test_keys_are_rotated)
{
    struct producer peer;
    connect_as(&peer, PRODUCER, ADDRESS_INGEST, 1);
    hello(&peer);
    store_records(&peer, 1, 10);
    producer_close(&peer);
    struct query next = authorize(STRANGER, 1U << QUERY_ROLE_PRODUCER, "worker-1b");
    (void)wire_key_text(next.key.replaces, pairs[PRODUCER].public_key);
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &next), REPLY_OK);
    const struct query away = revocation("worker-1");
    assert_int_equal(ask_as(ADMIN, ADDRESS_ADMIN, &away), REPLY_OK);
    assert_int_equal(daemon_end(&collector, SIGTERM), 0); // and it is kept
    start();
    connect_as(&peer, STRANGER, ADDRESS_INGEST, 1);
    hello(&peer);
    assert_string_equal(peer.error, "");
    assert_int_equal(peer.next[0], 11);
    store_records(&peer, 11, 20);
    producer_close(&peer);
    connect_as(&peer, PRODUCER, ADDRESS_INGEST, 1);
    assert_false(is_let_in(&peer));
    producer_close(&peer);
    assert_int_equal(integer("SELECT count(*) FROM inference"), 20);
}

TEST_MAIN_EACH(set_up, tear_down, test_roles_open_doors, test_what_each_may_do,
               test_handshakes_that_fail, test_the_owner_goes_by_permission,
               test_a_live_connection_is_revoked, test_a_key_expires, test_acts_have_an_actor,
               test_the_file_is_edited, test_a_role_is_taken_away, test_a_run_is_its_keys,
               test_keys_are_rotated)
