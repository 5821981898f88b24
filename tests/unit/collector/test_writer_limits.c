// Whose runs are whose, and how much of each is taken and held.

#include "server/collector/writer/writer_jobs.h"
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
    char sql[256];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM run WHERE key = '%s'",
                   wire_key_text(key, bytes));
    assert_int_equal(rig_integer(sql), 1);
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
    assert_string_equal(error_for(&said), "this run belongs to another key");
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

// Names beyond the limit are not stored; records that refer to them are rejected.
TEST_CASE(test_names_beyond_the_limit)
{
    static const struct wire_bytes four[] = {{1, "a"}, {1, "b"}, {1, "c"}, {1, "d"}};
    struct limits limits = LIMITS_DEFAULT;
    struct reject_counters *rejects = &rig.channels->rejects;
    uint64_t counts[REFUSAL_COUNT];
    limits.names = 2;
    batches_set_rules(rig.batches, NULL, &limits);
    rig_hello();
    struct message message = rig_operations(1, 2);
    message.batch.names = four;
    message.batch.name_count = COUNT_OF(four);
    rig_group(&message, false);
    struct message *ack = rig_last_ack();
    assert_int_equal(ack->ack.delivery.names_known, 4);
    assert_int_equal(ack->ack.refused_count, 0);
    rig_free_ack(ack);
    assert_int_equal(rig_integer("SELECT count(*) FROM run_name"), 2);
    reject_counters_read(rejects, counts);
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
    struct record record;
    rig_fill(&record, RECORD_KIND_OPERATION);
    record_set_name(&record, OPERATION_OPERATION, 3);
    table_builder_reset(rig.builder);
    assert_int_equal(table_builder_add(rig.builder, 3, &record), STATUS_OK);
    message.batch.first = message.batch.last = 3;
    message.batch.name_count = 0;
    message.batch.tables = table_builder_tables(rig.builder, &message.batch.table_count);
    rig_group(&message, false);
    ack = rig_last_ack();
    assert_int_equal(ack->ack.refused_count, 1);
    assert_int_equal(ack->ack.delivery.next[0].next, 4);
    rig_free_ack(ack);
    assert_int_equal(rig_integer("SELECT count(*) FROM range WHERE detail LIKE '%--max-names%'"),
                     1);
    message = rig_operations(4, 5); // stored names stay usable
    rig_group(&message, false);
    rig_free_ack(rig_last_ack());
    assert_int_equal(rig_integer("SELECT count(*) FROM operation"), 4);
}

// At its limit of names the store accepts only records without new names.
TEST_CASE(test_names_beyond_the_stores_limit)
{
    static const struct wire_bytes two[] = {{1, "a"}, {1, "b"}};
    struct limits limits = LIMITS_DEFAULT;
    const struct message first = hello_of(1);
    assert_string_equal(error_for(&first), "");
    rig_hello();
    limits.store_names = (uint32_t)rig_integer("SELECT max(id) FROM name");
    batches_set_rules(rig.batches, NULL, &limits);
    struct message message = rig_operations(1, 2);
    message.batch.names = two;
    message.batch.name_count = COUNT_OF(two);
    rig_group(&message, false);
    rig_free_ack(rig_last_ack());
    assert_int_equal(rig_integer("SELECT count(*) FROM range WHERE detail LIKE '%store has%'"), 1);
    const struct message same_host = hello_of(2);
    assert_string_equal(error_for(&same_host), "");
    struct message other_host = hello_of(3);
    other_host.hello.host = (struct wire_bytes){5, "other"};
    assert_non_null(strstr(error_for(&other_host), "limit of names"));
    assert_int_equal(rig_integer("SELECT count(*) FROM name WHERE text = 'other'"), 0);
}

TEST_MAIN_EACH(rig_set_up, rig_tear_down, test_a_run_belongs_to_the_key_that_opened_it,
               test_runs_of_a_key_that_are_not_over, test_names_beyond_the_limit,
               test_names_beyond_the_stores_limit, test_the_cache_is_bounded)
