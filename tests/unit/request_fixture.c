#include "tests/unit/request_fixture.h"

#include <sqlite3.h>

#include "common/core/record/record.h"
#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "common/store/schema/database_open.h"
#include "tests/support/rows.h"
#include "tests/support/test.h"

char folder[FOLDER_PATH_SIZE];
char path[FOLDER_PATH_SIZE];
sqlite3 *db;
struct store *store;
uint32_t models[3], devices[2];

int request_set_up(void **state)
{
    (void)state;
    struct error err = {0};
    folder_make(folder);
    (void)folder_path(path, folder, "s.db");
    if (database_open_writer(&db, path, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    rows_exec(db, "PRAGMA synchronous = OFF");
    models[0] = rows_name(db, "small");
    models[1] = rows_name(db, "large");
    models[2] = rows_name(db, "it's; --");
    devices[0] = rows_name(db, "gpu");
    devices[1] = rows_name(db, "cpu");
    rows_run(db, 1, "alpha", START_NS, START_NS + 400 * DAY);
    rows_run(db, 2, "beta", START_NS, START_NS + 400 * DAY);
    if (store_open(&store, path, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return 0;
}

int request_tear_down(void **state)
{
    (void)state;
    store_close(store);
    database_close(db);
    folder_remove(folder);
    return 0;
}

void add_request(int64_t run, const struct request *request)
{
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, request->started_ns);
    record_set_name(&record, INFERENCE_MODEL, models[request->model]);
    record_set_name(&record, INFERENCE_DEVICE, devices[request->device]);
    record_set_int(&record, INFERENCE_REQUEST, 1);
    record_set_int(&record, INFERENCE_FINISH, RECORD_FINISH_LENGTH);
    record_set_int(&record, INFERENCE_PROMPT_TOKENS, request->prompt);
    record_set_int(&record, INFERENCE_CACHED_PROMPT_TOKENS, 0);
    record_set_int(&record, INFERENCE_GENERATED_TOKENS, request->generated);
    record_set_int(&record, INFERENCE_QUEUE_NS, request->queue_ns);
    record_set_int(&record, INFERENCE_PREFILL_NS, request->prefill_ns);
    record_set_int(&record, INFERENCE_TTFT_NS, request->queue_ns + request->prefill_ns);
    record_set_int(&record, INFERENCE_DECODE_NS, request->decode_ns);
    record_set_int(&record, INFERENCE_E2E_NS,
                   request->queue_ns + request->prefill_ns + request->decode_ns);
    record_set_int(&record, INFERENCE_HOST_MEMORY, 1);
    if (request->concurrent > 0)
        record_set_int(&record, INFERENCE_CONCURRENT, request->concurrent);
    (void)rows_add(db, run, &record);
}
