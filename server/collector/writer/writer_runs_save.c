// Writes changes of runs to the store; extends ranges of stored and dropped records.
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/schema/schema.h"
#include "common/store/sqlite/database.h"
#include "common/core/base/text.h"
#include "server/collector/writer/writer_runs_inside.h"

// NULL unless `has`.
static struct statement_value value_if(bool has, int64_t number)
{
    return has ? value_int(number) : (struct statement_value){0};
}

static enum status save_range(struct runs *runs, const struct run *run, size_t place,
                              struct error *err)
{
    struct run_range *range = &run->streams[place].range;
    if (!range->dirty)
        return STATUS_OK;
    STATEMENT_BIND(&runs->statements, STATEMENT_RANGE_SAVE, value_int(run->id),
                   value_int(run->delivery.lanes[place].stream), value_int((int64_t)range->first),
                   value_int((int64_t)range->last), value_int(range->state),
                   value_if(range->state == SCHEMA_RANGE_DROPPED, (int64_t)range->reason),
                   value_text(range->detail), value_int(range->since_ns),
                   value_int(range->until_ns));
    range->dirty = false;
    return statement_run(&runs->statements, STATEMENT_RANGE_SAVE, err);
}

// True of a stream of which nothing is known yet; as if the store did not have it.
static bool is_unused(const struct run_stream *stream, const struct delivery_lane *lane)
{
    return lane->next == 1 && lane->produced == 0 && lane->unnumbered == 0 && !stream->activity;
}

static enum status save_streams(struct runs *runs, struct run *run, uint64_t *produced,
                                struct error *err)
{
    enum status status = STATUS_OK;
    *produced = 0;
    for (size_t i = 0; i < run->stream_count && status == STATUS_OK; i++) {
        struct run_stream *stream = &run->streams[i];
        struct delivery_lane *lane = &run->delivery.lanes[i];
        *produced += lane->produced;
        if ((!stream->dirty && !lane->changed) || is_unused(stream, lane))
            continue;
        status = STATEMENT_RUN(&runs->statements, STATEMENT_STREAM_SAVE, err, value_int(run->id),
                               value_int(lane->stream), value_int((int64_t)lane->next),
                               value_int((int64_t)lane->produced),
                               value_int((int64_t)lane->unnumbered), value_text(stream->activity),
                               value_if(stream->activity != NULL, stream->activity_since_ns),
                               value_int((int64_t)lane->no_room));
        if (status == STATUS_OK)
            status = save_range(runs, run, i, err);
        stream->dirty = false;
        lane->changed = false;
    }
    return status;
}

static enum status save_ledger(struct runs *runs, struct run *run, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++) {
        if (run->stored_by_kind[kind] == 0)
            continue;
        status = STATEMENT_RUN(&runs->statements, STATEMENT_LEDGER_ADD, err, value_int(run->id),
                               value_int((int64_t)kind), value_int(run->stored_by_kind[kind]));
        run->stored_by_kind[kind] = 0;
    }
    return status;
}

enum status runs_save(struct runs *runs, struct run *run, struct error *err)
{
    enum status status = run->complete ? save_streams(runs, run, &run->produced, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = save_ledger(runs, run, err);
    if (status != STATUS_OK)
        return status;
    const bool has_clock = run->clock_error_ns != 0;
    status = STATEMENT_RUN(
        &runs->statements, STATEMENT_RUN_UPDATE, err, value_int((int64_t)run->delivery.end),
        value_if(run->delivery.ended_ns != 0, run->delivery.ended_ns), value_int(run->heard_ns),
        value_int((int64_t)run->produced), value_int(run->stored),
        value_int(run->delivery.duplicates), value_int(run->refused),
        value_int(run->clock_suspects), value_int(run->unknown_columns), value_text(run->activity),
        value_int(run->device_count), value_if(has_clock, run->clock_offset_ns),
        value_if(has_clock, run->clock_error_ns), value_int(run->id));
    run->flushed_heard_ns = run->heard_ns;
    run->dirty = false;
    run->delivery.changed = false;
    return status;
}

// True if the next numbers extend the range: same state, reason and detail.
static bool same_kind(const struct run_range *range, int state, enum delivery_reason reason,
                      struct wire_bytes detail)
{
    if (range->first == 0 || range->state != state)
        return false;
    if (state == SCHEMA_RANGE_STORED)
        return true;
    const char *before = range->detail ? range->detail : "";
    return range->reason == reason && strlen(before) == detail.size &&
           (detail.size == 0 || memcmp(before, detail.bytes, detail.size) == 0);
}

enum status run_record_range(struct runs *runs, struct run *run, size_t place, int state,
                             const struct delivery_range *range, struct wire_bytes detail,
                             struct error *err)
{
    struct run_stream *stream = &run->streams[place];
    struct run_range *latest = &stream->range;
    detail.size = text_cut(detail.bytes, detail.size, RUN_TEXT_MAX);
    const bool is_dropped = state == SCHEMA_RANGE_DROPPED;
    const bool merges = is_dropped && latest->first != 0 && latest->state == state &&
                        run->drop_count >= DELIVERY_DROPS_MAX;
    if (!merges && !same_kind(latest, state, range->reason, detail)) {
        run->drop_count += is_dropped;
        enum status status = save_range(runs, run, place, err);
        char *copy = detail.size ? strndup(detail.bytes, detail.size) : NULL;
        if (status == STATUS_OK && detail.size && !copy)
            status = error_no_memory(err, "writer");
        free(latest->detail);
        *latest = (struct run_range){.first = range->first,
                                     .state = state,
                                     .reason = range->reason,
                                     .detail = copy,
                                     .since_ns = range->since_ns,
                                     .until_ns = range->until_ns};
        if (status != STATUS_OK)
            return status;
    }
    latest->last = range->last;
    if (range->since_ns < latest->since_ns)
        latest->since_ns = range->since_ns;
    if (range->until_ns > latest->until_ns)
        latest->until_ns = range->until_ns;
    latest->dirty = true;
    stream->dirty = true;
    run->dirty = true;
    return STATUS_OK;
}

// Losses are summed in spans of the collector's clock, so that jumps of a host's clock cannot
// add rows.
#define UNNUMBERED_SPAN_NS INT64_C(600000000000)

enum status run_record_unnumbered(struct runs *runs, struct run *run, int64_t received_ns,
                                  int64_t now_ns, struct error *err)
{
    const uint64_t risen = run->delivery.risen;
    const int64_t since_ns = run->told_ns < now_ns ? run->told_ns : now_ns;
    run->delivery.risen = 0;
    run->told_ns = now_ns;
    if (risen == 0)
        return STATUS_OK;
    // A heartbeat begins no transaction: its losses are added with what else the group saves.
    if (sqlite3_get_autocommit(runs->statements.db)) {
        const enum status status = database_exec(runs->statements.db, "BEGIN IMMEDIATE", err);
        if (status != STATUS_OK)
            return status;
    }
    return STATEMENT_RUN(&runs->statements, STATEMENT_UNNUMBERED_ADD, err, value_int(run->id),
                         value_int(received_ns - received_ns % UNNUMBERED_SPAN_NS),
                         value_int((int64_t)risen), value_int(since_ns), value_int(now_ns));
}
