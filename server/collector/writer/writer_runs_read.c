// Reads runs from the store.
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "server/collector/writer/writer_runs_inside.h"

static char *copy_text(const unsigned char *text)
{
    return text ? strdup((const char *)text) : NULL;
}

static enum status read_range(struct runs *runs, const struct run *run, size_t place,
                              struct error *err)
{
    struct statements *statements = &runs->statements;
    struct run_stream *stream = &run->streams[place];
    sqlite3_stmt *row = statements->list[STATEMENT_RANGE_LAST];
    STATEMENT_BIND(statements, STATEMENT_RANGE_LAST, value_int(run->id),
                   value_int(run->delivery.lanes[place].stream));
    enum status status = STATUS_OK;
    while (statement_row(statements, STATEMENT_RANGE_LAST, &status, err)) {
        stream->range = (struct run_range){
            .first = (uint64_t)sqlite3_column_int64(row, 0),
            .last = (uint64_t)sqlite3_column_int64(row, 1),
            .state = sqlite3_column_int(row, 2),
            .reason = (enum delivery_reason)sqlite3_column_int(row, 3),
            .detail = copy_text(sqlite3_column_text(row, 4)),
            .since_ns = sqlite3_column_int64(row, 5),
            .until_ns = sqlite3_column_int64(row, 6),
        };
    }
    return status;
}

static enum status read_streams(struct runs *runs, struct run *run, struct error *err)
{
    struct statements *statements = &runs->statements;
    sqlite3_stmt *row = statements->list[STATEMENT_STREAMS];
    STATEMENT_BIND(statements, STATEMENT_STREAMS, value_int(run->id));
    enum status status = STATUS_OK, added = STATUS_OK;
    while (statement_row(statements, STATEMENT_STREAMS, &status, err)) {
        const struct delivery_lane lane = {
            .stream = (uint32_t)sqlite3_column_int64(row, 0),
            .next = (uint64_t)sqlite3_column_int64(row, 1),
            .produced = (uint64_t)sqlite3_column_int64(row, 2),
            .unnumbered = (uint64_t)sqlite3_column_int64(row, 3),
            .no_room = (uint64_t)sqlite3_column_int64(row, 6),
        };
        if (added == STATUS_OK)
            added = delivery_run_restore(&run->delivery, &lane);
        if (added == STATUS_OK)
            added = run_make_streams(run, err);
        if (added != STATUS_OK)
            continue;
        struct run_stream *stream = &run->streams[run->stream_count - 1];
        stream->activity = copy_text(sqlite3_column_text(row, 4));
        stream->activity_since_ns = sqlite3_column_int64(row, 5);
    }
    if (status == STATUS_OK && added != STATUS_OK)
        status = error_no_memory(err, "writer");
    for (size_t i = 0; i < run->stream_count && status == STATUS_OK; i++)
        status = read_range(runs, run, i, err);
    if (status != STATUS_OK)
        return status;
    int64_t drops = 0;
    status = STATEMENT_INTEGER(statements, STATEMENT_DROPS, &drops, err, value_int(run->id));
    run->drop_count = (uint32_t)drops;
    return status;
}

// Makes the run's names up to number `count` those that are beyond a limit.
static enum status fill_names(struct runs *runs, struct run *run, uint32_t count, struct error *err)
{
    enum status status = STATUS_OK;
    int64_t other = 0;
    if (run->delivery.names_known < count)
        status = runs_other_name(runs, &other, err);
    while (status == STATUS_OK && run->delivery.names_known < count)
        if (run_append_name(run, other) != STATUS_OK)
            status = error_no_memory(err, "writer");
    return status;
}

static enum status read_names(struct runs *runs, struct run *run, struct error *err)
{
    struct statements *statements = &runs->statements;
    sqlite3_stmt *row = statements->list[STATEMENT_RUN_NAMES];
    STATEMENT_BIND(statements, STATEMENT_RUN_NAMES, value_int(run->id));
    enum status status = STATUS_OK, added = STATUS_OK;
    while (statement_row(statements, STATEMENT_RUN_NAMES, &status, err)) {
        // Names beyond a limit are not stored: they leave gaps.
        if (added == STATUS_OK)
            added = fill_names(runs, run, (uint32_t)sqlite3_column_int64(row, 0) - 1, err);
        if (added == STATUS_OK)
            added = run_append_name(run, sqlite3_column_int64(row, 1));
    }
    return status == STATUS_OK && added != STATUS_OK ? error_no_memory(err, "writer") : status;
}

static void read_owner(struct run *run, sqlite3_stmt *row)
{
    const char *key = (const char *)sqlite3_column_text(row, 13);
    const char *who = (const char *)sqlite3_column_text(row, 16);
    run->owner = sqlite3_column_int64(row, 15);
    if (who && !key && peer_read_owner(&run->opener, who))
        return;
    if (key || who)
        run->opener.kind = PEER_KEY;
    // An invalid key or owner is no peer's: the run cannot be continued.
    if (key && !wire_key_parse(run->opener.key, key))
        memset(run->opener.key, 0, sizeof run->opener.key);
}

// Creates a run from a row of STATEMENT_RUN_FIND.
static struct run *read_run(sqlite3_stmt *row, const unsigned char uuid[MESSAGE_RUN_SIZE])
{
    struct run *run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    memcpy(run->uuid, uuid, MESSAGE_RUN_SIZE);
    run->id = sqlite3_column_int64(row, 0);
    run->delivery.end = (enum record_run_end)sqlite3_column_int(row, 1);
    run->delivery.ended_ns = sqlite3_column_int64(row, 2);
    run->heard_ns = sqlite3_column_int64(row, 3);
    run->flushed_heard_ns = run->heard_ns;
    run->told_ns = run->heard_ns;
    run->stored = sqlite3_column_int64(row, 4);
    run->delivery.duplicates = sqlite3_column_int64(row, 5);
    run->refused = sqlite3_column_int64(row, 6);
    run->clock_suspects = sqlite3_column_int64(row, 7);
    run->unknown_columns = sqlite3_column_int64(row, 8);
    run->activity = copy_text(sqlite3_column_text(row, 9));
    run->device_count = sqlite3_column_int64(row, 10);
    run->clock_offset_ns = sqlite3_column_int64(row, 11);
    run->clock_error_ns = sqlite3_column_int64(row, 12);
    run->produced = (uint64_t)sqlite3_column_int64(row, 14);
    read_owner(run, row);
    const int64_t started_ns = sqlite3_column_int64(row, 17);
    run->began_ns = started_ns > 0 ? started_ns : sqlite3_column_int64(row, 18);
    return run;
}

enum status runs_read(struct runs *runs, const unsigned char uuid[MESSAGE_RUN_SIZE],
                      struct run **out, struct error *err)
{
    struct statements *statements = &runs->statements;
    char text[37];
    text_from_uuid(text, uuid);
    STATEMENT_BIND(statements, STATEMENT_RUN_FIND, value_text(text));
    enum status status = STATUS_OK;
    struct run *run = NULL;
    bool found = false;
    while (statement_row(statements, STATEMENT_RUN_FIND, &status, err)) {
        if (found)
            continue; // a UUID is unique
        found = true;
        run = read_run(statements->list[STATEMENT_RUN_FIND], uuid);
    }
    if (status == STATUS_OK && found && !run)
        status = error_no_memory(err, "writer");
    if (status != STATUS_OK) {
        run_free(run);
        return status;
    }
    *out = run;
    return STATUS_OK;
}

enum status runs_complete(struct runs *runs, struct run *run, struct error *err)
{
    const uint32_t told = run->names_told;
    if (run->complete)
        return STATUS_OK;
    enum status status = read_streams(runs, run, err);
    if (status == STATUS_OK)
        status = read_names(runs, run, err);
    if (status == STATUS_OK)
        status = fill_names(runs, run, told, err);
    if (status != STATUS_OK) {
        run_drop_details(run);
        run->names_told = told;
        return status;
    }
    run->complete = true;
    return STATUS_OK;
}
