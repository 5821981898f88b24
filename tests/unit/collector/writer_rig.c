#include "tests/unit/collector/writer_rig.h"

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/wire/codec.h"
#include "common/store/schema/database_open.h"
#include "server/collector/access/quota.h"
#include "server/collector/threads/job.h"
#include "tests/support/test.h"

struct rig rig = {.trims = true};

const unsigned char rig_run[16] = {1, 2, 3, 4};
const struct wire_bytes rig_two_names[2] = {{3, "one"}, {3, "two"}};

int rig_set_up(__attribute__((unused)) void **state)
{
    struct error err = {0};
    folder_make(rig.folder);
    (void)folder_path(rig.path, rig.folder, "s.db");
    static const unsigned char store[16] = {9};
    if (database_open_writer(&rig.db, rig.path, &err) != STATUS_OK ||
        runs_new(&rig.runs, rig.db, &err) != STATUS_OK ||
        inserter_new(&rig.inserter, rig.db, &err) != STATUS_OK ||
        channels_new(&rig.channels, &err) != STATUS_OK ||
        batches_new(&rig.batches, rig.runs, rig.inserter, store, rig.channels, &err) != STATUS_OK ||
        table_builder_new(&rig.builder) != STATUS_OK)
        fail_msg("%s", err.text);
    // Nothing here asks what a disk keeps.
    return database_exec(rig.db, "PRAGMA synchronous = OFF", NULL) == STATUS_OK ? 0 : -1;
}

int rig_tear_down(__attribute__((unused)) void **state)
{
    table_builder_free(rig.builder);
    batches_free(rig.batches);
    quota_free(rig.channels->quota);
    channels_free(rig.channels);
    inserter_free(rig.inserter);
    runs_free(rig.runs);
    database_close(rig.db);
    folder_remove(rig.folder);
    rig = (struct rig){.trims = true};
    return 0;
}

int64_t rig_integer(const char *sql)
{
    struct error err = {0};
    int64_t value = 0;
    if (database_integer(rig.db, sql, &value, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
    return value;
}

void rig_exec(const char *sql)
{
    struct error err = {0};
    if (database_exec(rig.db, sql, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
}

// Lets go of what can be read again, every other time.
static void trim(void)
{
    static unsigned times;
    size_t complete;
    if (!rig.trims || ++times % 3 == 0)
        return;
    runs_trim(rig.runs, 0);
    (void)runs_size(rig.runs, &complete);
    assert_int_equal(complete, 0);
}

// Takes a message as one group of its own; rolled back where `fail`.
static bool is_heartbeat(const struct message *message)
{
    return message->kind == MESSAGE_BATCH && message->batch.first == 0 &&
           message->batch.name_count == 0 && message->batch.drop_count == 0;
}

void rig_group(const struct message *message, bool fail)
{
    struct error err = {0};
    struct job job = {.kind = JOB_MESSAGE, .received_ns = RIG_NS + rig.later_ns};
    job.message = *message;
    job.from.socket = rig.connection;
    job.peer = rig.peer;
    if (rig.sender != 0)
        job.peer.kind = PEER_KEY;
    memset(job.peer.key, rig.sender, sizeof job.peer.key);
    job.owner = quota_owner(rig.channels->quota, &job.peer);
    if (!is_heartbeat(message)) // the writer begins no transaction for one
        rig_exec("BEGIN");
    batches_begin(rig.batches);
    if (batches_apply(rig.batches, &job, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    if (sqlite3_get_autocommit(rig.db))
        rig_exec("BEGIN");
    if (runs_flush(rig.runs, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    if (fail) {
        database_rollback(rig.db);
        batches_drop_acks(rig.batches);
        runs_forget(rig.runs);
        assert_int_equal(inserter_reset(rig.inserter, &err), STATUS_OK);
    } else {
        rig_exec("COMMIT");
        batches_send_acks(rig.batches);
        trim();
    }
}

// The Ack that was sent last, to be freed; NULL when there is none.
struct message *rig_last_ack(void)
{
    struct message *message = NULL;
    struct answer *answer;
    while ((answer = queue_pop(rig.channels->acks)) != NULL) {
        if (!message)
            message = calloc(1, sizeof *message);
        else
            message_free(message);
        assert_int_equal(codec_decode(message, answer->bytes, answer->size, NULL), STATUS_OK);
        answer_free(answer);
    }
    return message;
}

void rig_free_ack(struct message *message)
{
    if (message)
        message_free(message);
    free(message);
}

void rig_hello(void)
{
    struct message message = {.kind = MESSAGE_HELLO};
    message.hello = (struct message_hello){
        .protocol = 1, .host = {4, "host"}, .worker_version = {1, "v"}, .cpu_count = 1};
    memcpy(message.hello.run, rig_run, sizeof rig_run);
    rig_group(&message, false);
    struct message *ack = rig_last_ack();
    assert_non_null(ack);
    assert_int_equal(ack->ack.delivery.sequence, 0);
    rig_free_ack(ack);
}

// A record of the kind with every column set from its position.
void rig_fill(struct record *record, enum record_kind kind)
{
    const struct record_kind_info *info = record_kind_info(kind);
    record_init(record, kind, INT64_C(1790000000000000000));
    for (unsigned c = 0; c < info->column_count; c++) {
        switch ((int)info->columns[c].type) {
        case COLUMN_REAL:
            record_set_real(record, c, 0.25 + c);
            break;
        case COLUMN_NAME:
            record_set_name(record, c, 1 + c % 2);
            break;
        case COLUMN_TEXT:
            assert_int_equal(record_set_text(record, c, "text", 4), 4);
            break;
        case COLUMN_BLOB:
            assert_int_equal(record_set_blob(record, c, "\0\1\2", 3), 3);
            break;
        case COLUMN_INT:
            record_set_int(record, c, (int64_t)c + 2);
            break;
        default:
            record_set_int(record, c, 1);
        }
    }
}

struct message rig_operations(uint64_t first, uint64_t last)
{
    struct message message = {.kind = MESSAGE_BATCH};
    struct record record;
    table_builder_reset(rig.builder);
    for (uint64_t number = first; number <= last; number++) {
        rig_fill(&record, RECORD_KIND_OPERATION);
        assert_int_equal(table_builder_add(rig.builder, number, &record), STATUS_OK);
    }
    message.batch = (struct message_batch){
        .first = first, .last = last, .names_first = 1, .names = rig_two_names, .name_count = 2};
    memcpy(message.batch.run, rig_run, sizeof rig_run);
    message.batch.tables = table_builder_tables(rig.builder, &message.batch.table_count);
    return message;
}

static const struct delivery_stream two_made[] = {{.produced = 2}};
static const struct wire_activity activities[] = {
    {.stream = 1, .text = {6, "decode"}, .since_ns = 70},
    {.stream = 3, .text = {0, ""}},
    {.stream = 4, .text = {10, "load model"}, .since_ns = 80}};

struct message rig_killed_goodbye(void)
{
    struct message message = {.kind = MESSAGE_GOODBYE};
    message.goodbye = (struct message_goodbye){.ended_ns = 90,
                                               .streams = two_made,
                                               .stream_count = COUNT_OF(two_made),
                                               .killed = true,
                                               .activities = activities,
                                               .activity_count = COUNT_OF(activities)};
    memcpy(message.goodbye.run, rig_run, sizeof rig_run);
    return message;
}
