// Whose runs are whose, and how much of each is taken and held.

#include "common/store/retention/clear.h"
#include "server/collector/access/quota.h"
#include "server/collector/writer/writer.h"
#include "tests/support/test.h"
#include "tests/unit/collector/writer_rig.h"

static struct message hello_of(unsigned char run)
{
    struct message message = {.kind = MESSAGE_HELLO};
    message.hello = (struct message_hello){.protocol = 1, .host = {4, "host"}};
    memset(message.hello.run, run, sizeof message.hello.run);
    return message;
}

// The error in the answer to a message; empty where there is none.
static const char *error_for(const struct message *message)
{
    static char text[128];
    rig_group(message, false);
    struct message *ack = rig_last_ack();
    assert_non_null(ack);
    (void)snprintf(text, sizeof text, "%.*s", (int)ack->ack.error.size,
                   ack->ack.error.size ? ack->ack.error.bytes : "");
    rig_free_ack(ack);
    return text;
}

TEST_CASE(test_a_run_belongs_to_the_key_that_opened_it)
{
    static const char others[] = {'b', 0};
    rig.sender = 'a';
    rig_hello();
    struct message all = rig_operations(1, 2);
    assert_string_equal(error_for(&all), "");
    char key[WIRE_KEY_TEXT_SIZE];
    unsigned char bytes[WIRE_KEY_SIZE];
    memset(bytes, 'a', sizeof bytes);
    assert_int_equal(rig_integer(format_text("SELECT count(*) FROM run WHERE key = '%s'",
                                             wire_key_text(key, bytes))),
                     1);
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT_OF(others); i++) {
            rig.sender = others[i];
            struct message said = hello_of(0);
            memcpy(said.hello.run, rig_run, sizeof rig_run);
            assert_string_equal(error_for(&said), "this run belongs to another key");
            all = rig_operations(3, 4);
            assert_string_equal(error_for(&all), "this run belongs to another key");
            const struct message goodbye = rig_killed_goodbye();
            assert_string_equal(error_for(&goodbye), "this run belongs to another key");
        }
        assert_int_equal(rig_integer("SELECT count(*) FROM operation"), 2);
        assert_int_equal(rig_integer("SELECT \"end\" FROM run"), RECORD_RUN_END_OPEN);
        runs_forget(rig.runs); // as the store has it, too
    }
    rig.sender = 'a';
    rig_hello();
    all = rig_operations(3, 4);
    assert_string_equal(error_for(&all), "");
    // And one without a key goes on without one.
    rig.sender = 0;
    struct message said = hello_of(9);
    assert_string_equal(error_for(&said), "");
    rig.sender = 'a';
    assert_string_equal(error_for(&said), "this run belongs to another user");
}

// Says a message of a run that was removed; expects that nothing more of it is accepted.
static void expect_forgotten(const struct message *message)
{
    rig_group(message, false);
    struct message *ack = rig_last_ack();
    assert_non_null(ack);
    assert_int_equal(ack->ack.delivery.hello_wanted, message->kind != MESSAGE_HELLO);
    assert_int_equal(ack->ack.forgotten, message->kind == MESSAGE_HELLO);
    assert_int_equal(ack->ack.error.size > 0, message->kind == MESSAGE_HELLO);
    rig_free_ack(ack);
}

TEST_CASE(test_a_run_that_was_forgotten)
{
    struct error err = {0};
    struct clearing clearing;
    struct query query = {.kind = QUERY_FORGET};
    bool done = false;
    rig_hello();
    struct message all = rig_operations(1, 5), said = hello_of(0);
    memcpy(said.hello.run, rig_run, sizeof rig_run);
    assert_string_equal(error_for(&all), "");
    (void)snprintf(query.key.text, sizeof query.key.text, "user:12345");
    assert_int_equal(clear_begin_forget(&clearing, rig.db, &query, &err), STATUS_NO_DATA);
    (void)snprintf(query.key.text, sizeof query.key.text, "loopback");
    expect_ok(clear_begin_forget(&clearing, rig.db, &query, &err), &err);
    assert_int_equal(runs_reload(rig.runs, 1, &err), STATUS_OK);
    for (unsigned slice = 0; !done; slice++) {
        all = rig_operations(6, 7); // goes on sending
        expect_forgotten(&all);
        expect_forgotten(&said);
        expect_ok(clear_slice(&clearing, rig.db, &done, &err), &err);
    }
    assert_int_equal(rig_integer("SELECT (SELECT count(*) FROM run) + (SELECT count(*) FROM stream)"
                                 " + (SELECT count(*) FROM operation)"
                                 " + (SELECT count(*) FROM range)"),
                     0);
    assert_int_equal(rig_integer("SELECT stored FROM forgotten WHERE why = 1"), 5);
    assert_int_equal(rig_integer("SELECT cleared FROM forgotten WHERE why = 1"), 5);
    assert_true(rig_integer("SELECT replays FROM forgotten WHERE why = 0") > 1);
    runs_forget(rig.runs);
    expect_forgotten(&said);
    // Others of the same owner go on, under other ids.
    const struct message other = hello_of(9);
    assert_int_equal(runs_refresh_ids(rig.runs, &err), STATUS_OK);
    assert_string_equal(error_for(&other), "");
    assert_int_equal(rig_integer("SELECT run FROM run"), 2);
}

// Behind the horizon, where tombstones have made room for others.
TEST_CASE(test_runs_older_than_the_horizon)
{
    struct message said = hello_of(3);
    said.hello.started_ns = 1000;
    assert_string_equal(error_for(&said), "");
    rig_exec("UPDATE owner SET horizon_ns = 1000");
    assert_string_equal(error_for(&said), ""); // the store has it
    memset(said.hello.run, 4, sizeof said.hello.run);
    expect_forgotten(&said);
    rig.sender = 'a'; // another owner's horizon
    assert_string_equal(error_for(&said), "");
    rig.sender = 0;
    memset(said.hello.run, 5, sizeof said.hello.run);
    said.hello.started_ns = 1001;
    assert_string_equal(error_for(&said), "");
}

// With a key that replaces another one a run may be that of another owner; root has its own.
TEST_CASE(test_replays_of_runs_older_than_the_horizon)
{
    static const struct {
        const char *horizon_of; // key a or b, or user 1001
        char sender;            // key; 0: a user
        uid_t uid;
        bool replay, forgotten;
    } cases[] = {
        {"a", 'a', 0, true, true},    {"a", 'b', 0, true, true},      {"a", 'b', 0, false, true},
        {"b", 'a', 0, true, false},   {"user", 0, 1001, true, true},  {"user", 0, 0, true, false},
        {"user", 0, 0, false, false}, {"user", 0, 1002, true, false}, {"a", 0, 0, true, false},
    };
    struct limits limits = LIMITS_DEFAULT;
    struct error err = {0};
    struct access *access = NULL;
    unsigned char keys[2][WIRE_KEY_SIZE];
    char texts[2][WIRE_KEY_TEXT_SIZE], path[FOLDER_PATH_SIZE], sql[256];
    for (unsigned i = 0; i < 2; i++) {
        memset(keys[i], 'a' + (int)i, WIRE_KEY_SIZE);
        (void)wire_key_text(texts[i], keys[i]);
    }
    (void)snprintf(sql, sizeof sql, "%s producer b replaces %s\n", texts[1], texts[0]);
    (void)write_text(folder_path(path, rig.folder, "keys"), sql);
    expect_ok(access_open(&access, path, &err), &err);
    batches_set_rules(rig.batches, access, &limits);
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        struct message said = hello_of((unsigned char)(i + 1));
        const bool is_user = cases[i].horizon_of[0] == 'u';
        said.hello.started_ns = 1000;
        said.hello.replay = cases[i].replay;
        rig_exec("DELETE FROM owner");
        (void)snprintf(
            sql, sizeof sql, "INSERT INTO owner(who, horizon_ns) VALUES('%s%s', 1000)",
            is_user ? "user:1001" : "key:", is_user ? "" : texts[cases[i].horizon_of[0] - 'a']);
        rig_exec(sql);
        rig.sender = cases[i].sender;
        rig.peer = (struct wire_peer){.kind = PEER_USER, .uid = cases[i].uid};
        if (cases[i].forgotten)
            expect_forgotten(&said);
        else
            assert_string_equal(error_for(&said), "");
    }
    access_close(access);
}

TEST_CASE(test_runs_of_a_key_that_are_not_over)
{
    struct limits limits = LIMITS_DEFAULT;
    limits.runs_per_key = 3;
    batches_set_rules(rig.batches, NULL, &limits);
    for (unsigned char run = 1; run <= 5; run++) {
        const struct message said = hello_of(run);
        assert_int_equal(strlen(error_for(&said)) != 0, run > 3);
    }
    const struct message known = hello_of(2);
    assert_string_equal(error_for(&known), "");
    rig.sender = 'a'; // another one's are counted apart
    const struct message other = hello_of(6);
    assert_string_equal(error_for(&other), "");
    rig.sender = 0;
    struct message goodbye = {.kind = MESSAGE_GOODBYE, .goodbye = {.ended_ns = 1}};
    memset(goodbye.goodbye.run, 2, sizeof goodbye.goodbye.run);
    assert_string_equal(error_for(&goodbye), "");
    const struct message next = hello_of(7);
    assert_string_equal(error_for(&next), "");
    const struct message one_more = hello_of(8);
    assert_string_not_equal(error_for(&one_more), "");
    rig_exec("UPDATE run SET heard_ns = heard_ns - 3600000000001"); // long silent
    assert_string_equal(error_for(&one_more), "");
}

// A Hello can list many streams; those without records take no room in the store.
TEST_CASE(test_streams_without_records)
{
    static struct delivery_stream streams[64];
    struct message said = hello_of(0), all = rig_operations(1, 2);
    for (uint32_t i = 0; i < COUNT_OF(streams); i++)
        streams[i] = (struct delivery_stream){.stream = i, .unnumbered = i == 9};
    said.hello.streams = streams;
    said.hello.stream_count = COUNT_OF(streams);
    memcpy(said.hello.run, rig_run, sizeof rig_run);
    assert_string_equal(error_for(&said), "");
    assert_int_equal(rig_integer("SELECT sum(stream) FROM stream"), 9);
    assert_string_equal(error_for(&all), "");
    assert_int_equal(rig_integer("SELECT sum(stream) + count(*) FROM stream"), 9 + 2);
    assert_int_equal(rig_integer("SELECT count(*) FROM v_ledger WHERE balanced = 0"), 0);
}

// However many runs a few owners have open, there is room for those of others.
TEST_CASE(test_open_runs_of_many_owners)
{
    struct error err = {0};
    struct message said = hello_of(1);
    rig.peer = (struct wire_peer){.kind = PEER_USER, .uid = 1};
    assert_string_equal(error_for(&said), "");
    rig_exec("CREATE TEMP TABLE more AS WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1"
             " FROM n WHERE i < 15500) SELECT run.*, i FROM run, n;"
             "UPDATE more SET run = i, uuid = printf('%08x-0000-0000-0000-000000000000', i),"
             " owner = 1 + i % 4; ALTER TABLE more DROP COLUMN i;"
             "INSERT INTO run SELECT * FROM more;"
             "INSERT INTO owner(owner, who) VALUES(2, 'user:2'), (3, 'user:3'), (4, 'user:4')");
    assert_int_equal(runs_reload(rig.runs, 1, &err), STATUS_OK);
    assert_string_equal(error_for(&said), ""); // the next group counts them
    for (unsigned char run = 2; run < 20; run++) {
        rig.peer.uid = run % 9 + 1;
        said = hello_of(run);
        if (error_for(&said)[0] != (rig.peer.uid <= 4 ? 't' : '\0'))
            fail_msg("user %u", rig.peer.uid);
    }
}

// Those that take much are let go of, those that take little never because of them.
TEST_CASE(test_the_cache_is_bounded)
{
    static char texts[300][4];
    static struct wire_bytes names[COUNT_OF(texts)];
    for (unsigned i = 0; i < COUNT_OF(texts); i++) {
        (void)snprintf(texts[i], sizeof texts[i], "%u", i);
        names[i] = (struct wire_bytes){strlen(texts[i]), texts[i]};
    }
    rig.trims = false;
    for (unsigned char run = 1; run <= 20; run++) {
        const struct message said = hello_of(run);
        assert_string_equal(error_for(&said), "");
        struct message batch = {.kind = MESSAGE_BATCH};
        memset(batch.batch.run, run, sizeof batch.batch.run);
        batch.batch.names_first = 1;
        batch.batch.names = names;
        batch.batch.name_count = run % 10 ? 2 : COUNT_OF(names);
        assert_string_equal(error_for(&batch), "");
    }
    size_t complete;
    struct run *run = NULL;
    for (unsigned char i = 1; i <= 20; i++) { // all are here
        unsigned char uuid[16];
        memset(uuid, i, sizeof uuid);
        assert_int_equal(runs_find(rig.runs, uuid, &run, NULL), STATUS_OK);
        assert_int_equal(runs_complete(rig.runs, run, NULL), STATUS_OK);
        assert_int_equal(run->delivery.names_known, i % 10 ? 2 : COUNT_OF(names));
        assert_true(run->delivery.greeted);
    }
    const size_t all = runs_size(rig.runs, &complete);
    assert_int_equal(complete, 20);
    runs_trim(rig.runs, all);
    (void)runs_size(rig.runs, &complete);
    assert_int_equal(complete, 20);
    runs_trim(rig.runs, all - 1);
    assert_true(runs_size(rig.runs, &complete) < all - 1);
    assert_int_equal(complete, 18);
}

// Gives the collector quotas; the store takes `store_names` names.
static void set_quotas(const char *text, uint32_t store_names)
{
    struct quota_rules rules = quota_rules_default();
    struct limits limits = LIMITS_DEFAULT;
    struct error err = {0};
    if (text)
        expect_ok(quota_rules_parse(&rules, text, &err), &err);
    expect_ok(quota_new(&rig.channels->quota, &rules, 0, store_names, &err), &err);
    batches_set_rules(rig.batches, NULL, &limits);
}

// A batch of a run with `count` names "PREFIX-1".., and an operation of each from `first` on.
static void add_names(unsigned char run, const char *prefix, unsigned first, unsigned count)
{
    static char texts[DELIVERY_NAMES_MAX][32];
    static struct wire_bytes names[DELIVERY_NAMES_MAX];
    struct message message = {.kind = MESSAGE_BATCH};
    struct record record;
    for (unsigned i = 0; i < count; i++) {
        const int size = snprintf(texts[i], sizeof texts[i], "%s-%u", prefix, first + i);
        names[i] = (struct wire_bytes){(size_t)size, texts[i]};
    }
    table_builder_reset(rig.builder);
    for (unsigned i = 0; i < count; i++) {
        rig_fill(&record, RECORD_KIND_OPERATION);
        record_set_name(&record, OPERATION_OPERATION, first + i);
        record_set_name(&record, OPERATION_DEVICE, first);
        assert_int_equal(table_builder_add(rig.builder, first + i, &record), STATUS_OK);
    }
    memset(message.batch.run, run, sizeof message.batch.run);
    message.batch.first = first;
    message.batch.last = first + count - 1;
    message.batch.names_first = first;
    message.batch.names = names;
    message.batch.name_count = count;
    message.batch.tables = table_builder_tables(rig.builder, &message.batch.table_count);
    rig_group(&message, false);
    struct message *ack = rig_last_ack();
    assert_non_null(ack);
    assert_int_equal(ack->ack.refused_count, 0);
    assert_int_equal(ack->ack.delivery.names_known, first + count - 1);
    rig_free_ack(ack);
}

static int64_t named(const char *name)
{
    return rig_integer(
        format_text("SELECT count(*) FROM v_operation WHERE operation = '%s'", name));
}

// Records of names beyond a run's limit are stored, with the name "other".
TEST_CASE(test_names_beyond_the_limit)
{
    struct limits limits = LIMITS_DEFAULT;
    struct reject_counters *rejects = &rig.channels->rejects;
    uint64_t counts[REFUSAL_COUNT];
    limits.names = 2;
    batches_set_rules(rig.batches, NULL, &limits);
    const struct message said = hello_of(1);
    assert_string_equal(error_for(&said), "");
    add_names(1, "a", 1, 4);
    assert_int_equal(rig_integer("SELECT count(*) FROM run_name"), 2);
    assert_int_equal(named("a-2"), 1);
    assert_int_equal(named("other"), 2);
    reject_counters_read(rejects, counts);
    assert_int_equal(counts[REFUSAL_NAMES], 2);
    rig_exec("BEGIN");
    assert_int_equal(writer_save_refusals(rig.db, counts, 7, NULL), STATUS_OK);
    rig_exec("ROLLBACK");
    assert_true(reject_counters_are_unsaved(rejects));
    reject_counters_read(rejects, counts);
    reject_counters_count(rejects, REFUSAL_NAMES, 1); // later
    rig_exec("BEGIN");
    assert_int_equal(writer_save_refusals(rig.db, counts, 7, NULL), STATUS_OK);
    rig_exec("COMMIT");
    reject_counters_saved(rejects, counts);
    reject_counters_read(rejects, counts);
    assert_int_equal(counts[REFUSAL_NAMES], 1);
    assert_int_equal(
        rig_integer("SELECT count FROM refusal WHERE reason = 'names' AND last_ns = 7"), 2);
    // The next collector knows the stored ones, and is told the others again.
    runs_forget(rig.runs);
    assert_string_equal(error_for(&said), "");
    add_names(1, "a", 3, 2);
    assert_int_equal(named("other"), 2); // numbers 3 and 4 were stored already
    add_names(1, "a", 5, 2);
    assert_int_equal(named("other"), 4);
}

// One who names every request does not take the names of others.
TEST_CASE(test_names_beyond_the_quota)
{
    enum { RUNS = 16, NAMES = 100, MOST = 1000 };
    set_quotas("names=1000", LIMITS_STORE_NAMES);
    rig.sender = 'a';
    for (unsigned run = 1; run <= RUNS; run++) {
        const struct message said = hello_of((unsigned char)run);
        assert_string_equal(error_for(&said), "");
        add_names((unsigned char)run, format_text("run-%u", run), 1, NAMES);
    }
    assert_int_equal(rig_integer("SELECT count(*) FROM name WHERE owner <> 0"), MOST);
    assert_int_equal(rig_integer("SELECT count(*) FROM operation"), RUNS * NAMES);
    assert_int_equal(named("other"), RUNS * NAMES - MOST + 1); // the host is a name, too
    rig.sender = 'b';
    struct message said = hello_of(99);
    said.hello.host = (struct wire_bytes){8, "new-host"};
    assert_string_equal(error_for(&said), "");
    add_names(99, "b", 1, 2);
    assert_int_equal(rig_integer("SELECT count(*) FROM v_operation WHERE host = 'new-host'"
                                 " AND operation = 'b-2' AND device = 'b-1'"),
                     1);
    // Names that somebody has brought are for all, in a run with others in between, and after
    // a restart.
    rig.sender = 'a';
    add_names(RUNS, "b", NAMES + 1, 3);
    assert_int_equal(named("b-2"), 1);
    rig_exec("UPDATE name SET text = 'b-104' WHERE text = 'b-2'");
    add_names(RUNS, "b", NAMES + 4, 2);
    assert_int_equal(named("b-104"), 2);
    runs_forget(rig.runs);
    said = hello_of(RUNS);
    rig_group(&said, false);
    struct message *ack = rig_last_ack();
    assert_int_equal(ack->ack.delivery.names_known, NAMES + 4);
    rig_free_ack(ack);
    add_names(RUNS, "b", NAMES + 5, 2);
    assert_int_equal(named("b-104"), 2);
    assert_int_equal(rig_integer("SELECT count(*) FROM name WHERE text = 'other' AND owner = 0"),
                     1);
}

// A group that is rolled back has taken no names.
TEST_CASE(test_names_that_were_rolled_back)
{
    static const struct wire_bytes two[] = {{1, "a"}, {1, "b"}};
    set_quotas("names=3", LIMITS_STORE_NAMES);
    rig_hello(); // one is the host
    struct message message = rig_operations(1, 2);
    message.batch.names = two;
    message.batch.name_count = COUNT_OF(two);
    for (unsigned i = 0; i < 5; i++) {
        rig_group(&message, true);
        rig_hello();
    }
    rig_group(&message, false);
    rig_free_ack(rig_last_ack());
    assert_int_equal(rig_integer("SELECT count(*) FROM name WHERE text IN ('a', 'b')"), 2);
    assert_int_equal(rig_integer("SELECT count(*) FROM name WHERE text = 'other'"), 0);
}

// A store with all the names it takes goes on with "other".
TEST_CASE(test_names_beyond_the_stores_limit)
{
    set_quotas(NULL, 3);
    const struct message first = hello_of(1);
    assert_string_equal(error_for(&first), "");
    add_names(1, "a", 1, 4); // one has few names: the last ones are for it
    assert_int_equal(named("a-2"), 1);
    assert_int_equal(named("other"), 2);
    struct message other_host = hello_of(3);
    other_host.hello.host = (struct wire_bytes){8, "new-host"};
    assert_string_equal(error_for(&other_host), "");
    assert_int_equal(rig_integer("SELECT count(*) FROM v_run WHERE host = 'other'"), 1);
    assert_int_equal(rig_integer("SELECT count(*) FROM name"), 4);
}

TEST_CASE(test_new_runs_within_an_hour)
{
    set_quotas("runs=3", LIMITS_STORE_NAMES);
    for (unsigned char run = 1; run <= 5; run++) {
        const struct message said = hello_of(run);
        assert_int_equal(strstr(error_for(&said), "--quota") != NULL, run > 3);
    }
    const struct message known = hello_of(2);
    assert_string_equal(error_for(&known), "");
    rig.sender = 'a'; // another owner
    const struct message other = hello_of(6);
    assert_string_equal(error_for(&other), "");
}

// A batch of run 1 with an inference a day, from `day` days before the collector's time on.
// Returns whether it was answered.
static bool add_days(unsigned first, unsigned count, int64_t day)
{
    const int64_t day_ns = INT64_C(86400000000000);
    struct message message = {.kind = MESSAGE_BATCH};
    struct record record;
    table_builder_reset(rig.builder);
    for (unsigned i = 0; i < count; i++) {
        rig_fill(&record, RECORD_KIND_INFERENCE);
        record.started_ns = INT64_C(1790000000000000000) - (day + i) * day_ns;
        record_set_name(&record, INFERENCE_MODEL, 1);
        record_set_name(&record, INFERENCE_DEVICE, 1);
        assert_int_equal(table_builder_add(rig.builder, first + i, &record), STATUS_OK);
    }
    memset(message.batch.run, 1, sizeof message.batch.run);
    message.batch.first = first;
    message.batch.last = first + count - 1;
    message.batch.tables = table_builder_tables(rig.builder, &message.batch.table_count);
    rig_group(&message, false);
    struct message *ack = rig_last_ack();
    const bool is_answered = ack != NULL;
    if (ack)
        assert_int_equal(ack->ack.refused_count, 0);
    rig_free_ack(ack);
    return is_answered;
}

// A run with ever new names, then with ever new days: what it may fill of rollups is bounded, and
// its records of today are stored all the same.
TEST_CASE(test_cells_of_rollups)
{
    enum { QUOTA = 10, NAMES = 100, DAYS = 50 };
    set_quotas("cells=10", LIMITS_STORE_NAMES);
    rig.trims = false;
    const struct message said = hello_of(1);
    assert_string_equal(error_for(&said), "");
    add_names(1, "a", 1, NAMES);
    assert_int_equal(rig_integer("SELECT count(*) FROM operation"), NAMES);
    assert_int_equal(rig_integer("SELECT count(DISTINCT operation) FROM operation"),
                     CELLS_FREE + QUOTA + 1);
    assert_int_equal(named("other"), NAMES - CELLS_FREE - QUOTA);
    assert_int_equal(named("a-64"), 1);
    assert_true(add_days(NAMES + 1, 2, 0)); // today and yesterday
    assert_int_equal(rig_integer("SELECT count(*) FROM v_inference WHERE model = 'other'"), 2);
    for (unsigned i = 0; i < 3; i++)
        assert_false(add_days(NAMES + 3, DAYS, 0)); // waits until the quota has refilled
    assert_int_equal(rig_integer("SELECT count(*) FROM inference"), 2);
    assert_true(add_days(NAMES + 3, 2, 0)); // known cells
    // Another owner is not concerned.
    rig.sender = 'b';
    const struct message other = hello_of(2);
    assert_string_equal(error_for(&other), "");
    add_names(2, "b", 1, 20);
    assert_int_equal(named("b-20"), 1);
}

// Ranges with ever new reasons: beyond a number of them adjacent ones become one.
TEST_CASE(test_many_dropped_ranges)
{
    enum { MORE = 500 };
    static struct wire_drop drops[DELIVERY_DROPS_MAX];
    struct message message = {.kind = MESSAGE_BATCH};
    const struct message said = hello_of(1);
    assert_string_equal(error_for(&said), "");
    memset(message.batch.run, 1, sizeof message.batch.run);
    message.batch.drops = drops;
    for (uint64_t first = 1; first <= DELIVERY_DROPS_MAX + 1; first += DELIVERY_DROPS_MAX) {
        message.batch.drop_count = first == 1 ? DELIVERY_DROPS_MAX : MORE;
        for (size_t i = 0; i < message.batch.drop_count; i++)
            drops[i].range = (struct delivery_range){.first = first + i,
                                                     .last = first + i,
                                                     .reason = i % 2 ? DELIVERY_SPOOL_FULL
                                                                     : DELIVERY_SPOOL_DAMAGED};
        assert_string_equal(error_for(&message), "");
        runs_forget(rig.runs);
        assert_string_equal(error_for(&said), "");
    }
    assert_int_equal(rig_integer("SELECT count(*) FROM range"), DELIVERY_DROPS_MAX);
    assert_int_equal(rig_integer("SELECT max(last) FROM range"), DELIVERY_DROPS_MAX + MORE);
    assert_int_equal(rig_integer("SELECT dropped FROM v_ledger"), DELIVERY_DROPS_MAX + MORE);
}

// Records and losses that take turns: no two ranges are adjacent.
TEST_CASE(test_ranges_that_alternate)
{
    enum { QUOTA = 5, TURNS = 20 };
    static struct wire_drop drops[DELIVERY_DROPS_MAX];
    set_quotas("cells=5", LIMITS_STORE_NAMES);
    rig_hello();
    struct message message = {.kind = MESSAGE_BATCH};
    memcpy(message.batch.run, rig_run, sizeof rig_run);
    for (unsigned i = 0; i < DELIVERY_DROPS_MAX; i++)
        drops[i].range = (struct delivery_range){
            .first = i + 1, .last = i + 1, .reason = i % 2 ? DELIVERY_SPOOL_FULL : 0};
    message.batch.drops = drops;
    message.batch.drop_count = DELIVERY_DROPS_MAX;
    assert_string_equal(error_for(&message), "");
    for (unsigned i = 0; i < TURNS; i++) {
        const uint64_t number = DELIVERY_DROPS_MAX + 1 + 2 * (uint64_t)i;
        message = rig_operations(number, number);
        drops[0].range.first = drops[0].range.last = number + 1;
        message.batch.drops = drops;
        message.batch.drop_count = i % 2;
        rig_group(&message, false);
        struct message refused = rig_operations(number + 1, number + 1);
        refused.batch.fault = "invalid";
        if (i % 2 == 0)
            rig_group(&refused, false);
    }
    assert_int_equal(rig_integer("SELECT count(*) FROM range WHERE state = 1"),
                     DELIVERY_DROPS_MAX + QUOTA);
}

// Long texts, as old producers send them, are cut and not refused.
TEST_CASE(test_long_texts_of_a_run)
{
    static char text[4096];
    for (size_t i = 0; i + 2 <= sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    struct message said = hello_of(1);
    const struct wire_bytes longest = {sizeof text, text};
    said.hello.os = said.hello.cpu = said.hello.cuda = longest;
    assert_string_equal(error_for(&said), "");
    assert_int_equal(rig_integer("SELECT length(CAST(os || cpu || cuda AS BLOB))"
                                 " FROM run"),
                     3 * 254);
    said.hello.driver = longest; // told later
    said.hello.build_flags = longest;
    said.hello.huge_pages = (struct wire_bytes){6, "always"};
    assert_string_equal(error_for(&said), "");
    assert_int_equal(rig_integer("SELECT length(driver) FROM run"), 127);
    assert_int_equal(rig_integer("SELECT length(build_flags) FROM run"), 127);
    said.hello.huge_pages = said.hello.build_flags = (struct wire_bytes){0}; // stays
    said.hello.allocator = (struct wire_bytes){4, "musl"};
    assert_string_equal(error_for(&said), "");
    assert_int_equal(rig_integer("SELECT huge_pages = 'always' AND allocator = 'musl' AND"
                                 " length(build_flags) = 127 FROM v_run"),
                     1);
    struct message batch = {.kind = MESSAGE_BATCH};
    const struct wire_drop drop = {.range = {.first = 1, .last = 5, .reason = 1},
                                   .detail = longest};
    memset(batch.batch.run, 1, sizeof batch.batch.run);
    batch.batch.activity = longest;
    batch.batch.drops = &drop;
    batch.batch.drop_count = 1;
    assert_string_equal(error_for(&batch), "");
    assert_int_equal(rig_integer("SELECT length(last_activity) + length(detail) FROM run, range"),
                     254);
}

TEST_MAIN_EACH(rig_set_up, rig_tear_down, test_a_run_belongs_to_the_key_that_opened_it,
               test_a_run_that_was_forgotten, test_runs_older_than_the_horizon,
               test_replays_of_runs_older_than_the_horizon, test_open_runs_of_many_owners,
               test_streams_without_records, test_runs_of_a_key_that_are_not_over,
               test_names_beyond_the_limit, test_names_beyond_the_quota,
               test_names_that_were_rolled_back, test_names_beyond_the_stores_limit,
               test_new_runs_within_an_hour, test_cells_of_rollups, test_many_dropped_ranges,
               test_ranges_that_alternate, test_long_texts_of_a_run, test_the_cache_is_bounded)
