// Ranges of stored and dropped records, and losses before numbering.
#include <stdlib.h>
#include <string.h>

#include "common/store/schema/schema.h"
#include "server/collector/writer/writer_runs_inside.h"

// True if the next numbers extend the range: same state, reason and detail.
static bool same_kind(const struct run_range *range, int state, enum delivery_reason reason,
                      const char *detail, size_t size)
{
    if (range->first == 0 || range->state != state)
        return false;
    if (state == SCHEMA_RANGE_STORED)
        return true;
    const char *before = range->detail ? range->detail : "";
    return range->reason == reason && strlen(before) == size &&
           (size == 0 || memcmp(before, detail, size) == 0);
}

static enum status new_range(struct runs *runs, struct run *run, size_t place, int state,
                             const struct delivery_range *range, const char *detail,
                             size_t detail_size, struct error *err)
{
    char *copy = NULL;
    if (detail_size) {
        copy = strndup(detail, detail_size);
        if (!copy)
            return error_no_memory(err, "writer");
    }
    struct run_stream *stream = &run->streams[place];
    enum status status = runs_save_range(runs, run, place, err);
    free(stream->range.detail);
    stream->range = (struct run_range){.first = range->first,
                                       .last = range->last,
                                       .state = state,
                                       .reason = range->reason,
                                       .detail = copy,
                                       .since_ns = range->since_ns,
                                       .until_ns = range->until_ns};
    return status;
}

enum status run_record_range(struct runs *runs, struct run *run, size_t place, int state,
                             const struct delivery_range *range, const char *detail,
                             size_t detail_size, struct error *err)
{
    enum status status = STATUS_OK;
    struct run_stream *stream = &run->streams[place];
    if (same_kind(&stream->range, state, range->reason, detail, detail_size)) {
        stream->range.last = range->last;
        if (range->since_ns < stream->range.since_ns)
            stream->range.since_ns = range->since_ns;
        if (range->until_ns > stream->range.until_ns)
            stream->range.until_ns = range->until_ns;
    } else {
        status = new_range(runs, run, place, state, range, detail, detail_size, err);
    }
    stream->range.dirty = true;
    stream->dirty = true;
    run->dirty = true;
    return status;
}

// Losses are summed in spans of the collector's clock, so that jumps of a host's clock cannot
// add rows.
#define UNNUMBERED_SPAN_NS INT64_C(600000000000)

enum status run_record_unnumbered(struct runs *runs, struct run *run, int64_t received_ns,
                                  int64_t now_ns, struct error *err)
{
    struct statement_cache *statements = &runs->statements;
    const uint64_t risen = run->delivery.risen;
    const int64_t since_ns = run->told_ns < now_ns ? run->told_ns : now_ns;
    run->delivery.risen = 0;
    run->told_ns = now_ns;
    if (risen == 0)
        return STATUS_OK;
    statement_int(statements, STATEMENT_UNNUMBERED_ADD, 1, run->id);
    statement_int(statements, STATEMENT_UNNUMBERED_ADD, 2,
                  received_ns - received_ns % UNNUMBERED_SPAN_NS);
    statement_int(statements, STATEMENT_UNNUMBERED_ADD, 3, (int64_t)risen);
    statement_int(statements, STATEMENT_UNNUMBERED_ADD, 4, since_ns);
    statement_int(statements, STATEMENT_UNNUMBERED_ADD, 5, now_ns);
    return statement_run(statements, STATEMENT_UNNUMBERED_ADD, err);
}
