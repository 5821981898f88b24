// Writes changes of runs to the store.
#include <string.h>

#include "common/store/schema/schema.h"
#include "server/collector/writer/writer_runs_inside.h"

enum status runs_save_range(struct runs *runs, const struct run *run, size_t place,
                            struct error *err)
{
    struct statement_cache *statements = &runs->statements;
    struct run_range *range = &run->streams[place].range;
    if (!range->dirty)
        return STATUS_OK;
    statement_int(statements, STATEMENT_RANGE_SAVE, 1, run->id);
    statement_int(statements, STATEMENT_RANGE_SAVE, 2, run->delivery.lanes[place].stream);
    statement_int(statements, STATEMENT_RANGE_SAVE, 3, (int64_t)range->first);
    statement_int(statements, STATEMENT_RANGE_SAVE, 4, (int64_t)range->last);
    statement_int(statements, STATEMENT_RANGE_SAVE, 5, range->state);
    for (int column = 6; column <= 7; column++)
        statement_null(statements, STATEMENT_RANGE_SAVE, column);
    if (range->state == SCHEMA_RANGE_DROPPED)
        statement_int(statements, STATEMENT_RANGE_SAVE, 6, (int64_t)range->reason);
    if (range->detail)
        statement_text(statements, STATEMENT_RANGE_SAVE, 7, range->detail, strlen(range->detail));
    statement_int(statements, STATEMENT_RANGE_SAVE, 8, range->since_ns);
    statement_int(statements, STATEMENT_RANGE_SAVE, 9, range->until_ns);
    range->dirty = false;
    return statement_run(statements, STATEMENT_RANGE_SAVE, err);
}

static void bind_activity(struct statement_cache *statements, const struct run_stream *stream)
{
    statement_null(statements, STATEMENT_STREAM_SAVE, 6);
    statement_null(statements, STATEMENT_STREAM_SAVE, 7);
    if (!stream->activity)
        return;
    statement_text(statements, STATEMENT_STREAM_SAVE, 6, stream->activity,
                   strlen(stream->activity));
    statement_int(statements, STATEMENT_STREAM_SAVE, 7, stream->activity_since_ns);
}

static enum status save_streams(struct runs *runs, struct run *run, uint64_t *produced,
                                struct error *err)
{
    struct statement_cache *statements = &runs->statements;
    enum status status = STATUS_OK;
    *produced = 0;
    for (size_t i = 0; i < run->stream_count && status == STATUS_OK; i++) {
        struct run_stream *stream = &run->streams[i];
        struct delivery_lane *lane = &run->delivery.lanes[i];
        *produced += lane->produced;
        if (!stream->dirty && !lane->changed)
            continue;
        statement_int(statements, STATEMENT_STREAM_SAVE, 1, run->id);
        statement_int(statements, STATEMENT_STREAM_SAVE, 2, lane->stream);
        statement_int(statements, STATEMENT_STREAM_SAVE, 3, (int64_t)lane->next);
        statement_int(statements, STATEMENT_STREAM_SAVE, 4, (int64_t)lane->produced);
        statement_int(statements, STATEMENT_STREAM_SAVE, 5, (int64_t)lane->unnumbered);
        bind_activity(statements, stream);
        status = statement_run(statements, STATEMENT_STREAM_SAVE, err);
        if (status == STATUS_OK)
            status = runs_save_range(runs, run, i, err);
        stream->dirty = false;
        lane->changed = false;
    }
    return status;
}

static enum status save_ledger(struct runs *runs, struct run *run, struct error *err)
{
    struct statement_cache *statements = &runs->statements;
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++) {
        if (run->stored_by_kind[kind] == 0)
            continue;
        statement_int(statements, STATEMENT_LEDGER_ADD, 1, run->id);
        statement_int(statements, STATEMENT_LEDGER_ADD, 2, (int64_t)kind);
        statement_int(statements, STATEMENT_LEDGER_ADD, 3, run->stored_by_kind[kind]);
        status = statement_run(statements, STATEMENT_LEDGER_ADD, err);
        run->stored_by_kind[kind] = 0;
    }
    return status;
}

static void bind_clock(struct statement_cache *statements, const struct run *run)
{
    statement_null(statements, STATEMENT_RUN_UPDATE, 12);
    statement_null(statements, STATEMENT_RUN_UPDATE, 13);
    if (run->clock_error_ns == 0)
        return;
    statement_int(statements, STATEMENT_RUN_UPDATE, 12, run->clock_offset_ns);
    statement_int(statements, STATEMENT_RUN_UPDATE, 13, run->clock_error_ns);
}

enum status runs_save(struct runs *runs, struct run *run, struct error *err)
{
    struct statement_cache *statements = &runs->statements;
    enum status status = run->complete ? save_streams(runs, run, &run->produced, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = save_ledger(runs, run, err);
    if (status != STATUS_OK)
        return status;
    const int64_t values[] = {(int64_t)run->delivery.end,
                              0,
                              run->heard_ns,
                              (int64_t)run->produced,
                              run->stored,
                              run->delivery.duplicates,
                              run->refused,
                              run->clock_suspects,
                              run->unknown_columns};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        statement_int(statements, STATEMENT_RUN_UPDATE, (int)i + 1, values[i]);
    if (run->delivery.ended_ns)
        statement_int(statements, STATEMENT_RUN_UPDATE, 2, run->delivery.ended_ns);
    else
        statement_null(statements, STATEMENT_RUN_UPDATE, 2);
    if (run->activity)
        statement_text(statements, STATEMENT_RUN_UPDATE, 10, run->activity, strlen(run->activity));
    else
        statement_null(statements, STATEMENT_RUN_UPDATE, 10);
    statement_int(statements, STATEMENT_RUN_UPDATE, 11, run->device_count);
    bind_clock(statements, run);
    statement_int(statements, STATEMENT_RUN_UPDATE, 14, run->id);
    status = statement_run(statements, STATEMENT_RUN_UPDATE, err);
    run->flushed_heard_ns = run->heard_ns;
    run->dirty = false;
    run->delivery.changed = false;
    return status;
}
