#include "tests/integration/collector/collector_fixture.h"

#include <signal.h>

#include "common/store/schema/database_open.h"
#include "common/store/sqlite/database.h"

char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE], address[FOLDER_PATH_SIZE + 8];
struct daemon collector;
struct producer producer;
struct record records[64];

int collector_set_up(__attribute__((unused)) void **state)
{
    for (uint64_t i = 0; i < COUNT_OF(records); i++)
        producer_inference(&records[i], i + 1);
    folder_make(folder);
    (void)folder_path(path, folder, "s.db");
    (void)snprintf(address, sizeof address, "ipc://%s/c", folder);
    return 0;
}

int collector_tear_down(__attribute__((unused)) void **state)
{
    const int code = daemon_end(&collector, SIGTERM);
    folder_remove(folder);
    if (code != 0) // also a sanitizer's verdict
        print_error("it ended with %d: %s\n", code, collector.output);
    return code == 0 ? 0 : -1;
}

void collector_start(const char *option, const char *value)
{
    const char *const argv[] = {INFERSTATD, "--db", path, "--listen", address, option, value, NULL};
    if (!daemon_start(&collector, argv))
        fail_msg("%s", collector.output);
}

int collector_run(void **state)
{
    collector_set_up(state);
    collector_start(NULL, NULL);
    producer_open(&producer, endpoint("ingest"), 7);
    return 0;
}

int collector_end(void **state)
{
    producer_close(&producer);
    return collector_tear_down(state);
}

void say_hello(void)
{
    producer_hello(&producer, NULL, 0);
    assert_true(producer_await(&producer, 5000));
    assert_string_equal(producer.error, "");
    assert_int_equal(producer.acknowledged, 0);
}

void store_numbers(uint64_t first, uint64_t last)
{
    producer_batch(&producer, 0, first, &records[first - 1], (size_t)(last - first + 1));
    assert_true(producer_await_next(&producer, 0, last + 1));
}

void send_models(uint32_t stream, uint64_t first, unsigned count)
{
    enum { MOST = 512 };
    static char longest[MESSAGE_TEXT_SIZE_MAX];
    static uint64_t numbers[MOST];
    static int64_t started_ns[MOST];
    static uint32_t names[MOST];
    static struct wire_bytes texts[MOST];
    static const struct wire_bytes name = {5, "model"};
    assert_true(count <= MOST);
    memset(longest, 'x', sizeof longest);
    for (unsigned i = 0; i < count; i++) {
        numbers[i] = first + i;
        names[i] = 1;
        texts[i] = (struct wire_bytes){sizeof longest, longest};
    }
    const struct wire_column columns[] = {{.index = MODEL_NAME, .names = names},
                                          {.index = MODEL_DIGEST, .texts = texts},
                                          {.index = MODEL_FORMAT, .texts = texts},
                                          {.index = MODEL_ARCHITECTURE, .texts = texts},
                                          {.index = MODEL_QUANTISATION, .texts = texts}};
    const struct wire_table table = {.kind = RECORD_KIND_MODEL,
                                     .count = count,
                                     .numbers = numbers,
                                     .started_ns = started_ns,
                                     .columns = columns,
                                     .column_count = COUNT_OF(columns)};
    struct message message = {.kind = MESSAGE_BATCH,
                              .batch = {.sequence = 1000,
                                        .stream = stream,
                                        .first = first,
                                        .last = first + count - 1,
                                        .names_first = 1,
                                        .names = &name,
                                        .name_count = 1,
                                        .tables = &table,
                                        .table_count = 1}};
    memcpy(message.batch.run, producer.run, sizeof producer.run);
    producer_message(&producer, &message);
}

void expect_refusal(const char *const *argv, int status, const char *words)
{
    struct daemon other;
    if (daemon_start(&other, argv)) {
        (void)daemon_end(&other, SIGKILL);
        fail_msg("it started, where it should have said: %s", words);
    }
    assert_int_equal(daemon_end(&other, 0), status);
    if (!strstr(other.output, words) || strncmp(other.output, "inferstatd: ", 12) != 0)
        fail_msg("\"%s\" does not say \"%s\"", other.output, words);
}

const char *endpoint(const char *service)
{
    static _Thread_local char text[FOLDER_PATH_SIZE + 32];
    (void)snprintf(text, sizeof text, "%s/%s", address, service);
    return text;
}

int64_t integer(const char *sql)
{
    struct error err = {0};
    struct sqlite3 *db = NULL;
    int64_t value = 0;
    if (database_open_reader(&db, path, &err) != STATUS_OK ||
        database_integer(db, sql, &value, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
    database_close(db);
    return value;
}
