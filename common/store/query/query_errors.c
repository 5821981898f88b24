// ERRORS: failed requests, loads and operations, counted by the pattern of their error's text.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/key_index.h"
#include "common/core/base/text.h"
#include "common/core/base/text_pattern.h"
#include "common/store/query/query_list.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema_select.h"

enum {
    FAILURES_MAX = 500000, // of a kind that are read: the newest
    ROWS_USUAL = 100,
    ROWS_MAX = 1000,
    ENTRIES_MAX = 4096, // counted at a time
    ENTRIES_KEPT = ENTRIES_MAX / 2,
    TEXT_MAX = 255,                       // bytes of a text that are looked at
    KEYS_MAX = 2 + QUERY_DIMENSION_COUNT, // kind, hash of the pattern, dimensions
    NOTE_SIZE = EXPIRY_TEXT_SIZE + 128
};

// The kinds whose records can fail.  Each condition is that of a partial index on started_ns.
static const struct source {
    enum record_kind kind;
    const char *index, *failed;
} sources[] = {
    {RECORD_KIND_INFERENCE, "inference_failed", "t.finish = 3"},
    {RECORD_KIND_LOAD, "load_failed", "t.status = 1"},
    {RECORD_KIND_OPERATION, "operation_failed", "t.error IS NOT NULL"},
};
enum { SOURCES = sizeof sources / sizeof *sources };

_Static_assert(RECORD_FINISH_ERROR == 3 && RECORD_STATUS_ERROR == 1, "what has failed");

// Failures that agree in kind, pattern and dimensions.
struct entry {
    int64_t keys[KEYS_MAX];
    int64_t count, first_ns, last_ns;
    bool has_text;
    char pattern[TEXT_MAX + 1];
    char example[TEXT_MAX + 1]; // the newest
};

struct tally {
    const struct query *query;
    struct key_index index; // numbers the entries
    struct entry *entries;  // room for ENTRIES_MAX
    struct entry rest;      // failures in no entry
    bool was_full;          // an entry may lack failures that are in `rest`
    enum record_kind kind;  // of the scan that is running
    int64_t read;           // rows of that scan
    bool is_cut;            // a kind has more than FAILURES_MAX
};

// ---- Counting --------------------------------------------------------------------------

static void add(struct entry *entry, int64_t count, int64_t first_ns, int64_t last_ns)
{
    if (entry->count == 0 || first_ns < entry->first_ns)
        entry->first_ns = first_ns;
    if (entry->count == 0 || last_ns > entry->last_ns)
        entry->last_ns = last_ns;
    entry->count += count;
}

// Most failures first, then the newest.
static int by_count(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return (x->last_ns < y->last_ns) - (x->last_ns > y->last_ns);
}

// Moves the entries with the fewest failures to `rest`: many texts that occur once cannot push out
// those that occur often.
static enum status shrink(struct tally *tally)
{
    enum status status = STATUS_OK;
    size_t number = 0;
    qsort(tally->entries, ENTRIES_MAX, sizeof *tally->entries, by_count);
    for (size_t i = ENTRIES_KEPT; i < ENTRIES_MAX; i++)
        add(&tally->rest, tally->entries[i].count, tally->entries[i].first_ns,
            tally->entries[i].last_ns);
    key_index_clear(&tally->index);
    for (size_t i = 0; i < ENTRIES_KEPT && status == STATUS_OK; i++)
        status = key_index_add(&tally->index, tally->entries[i].keys, &number);
    tally->was_full = true;
    return status;
}

// FNV-1a, 64 bits.  Patterns with equal hashes would count as one.
static int64_t hash_of(const char *text, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return (int64_t)(hash >> 1);
}

// Columns of the row: error, started_ns, dimensions.
static enum status on_failure(void *context, sqlite3_stmt *row, struct error *err)
{
    struct tally *tally = context;
    const char *text = (const char *)sqlite3_column_text(row, 0);
    const int64_t at_ns = sqlite3_column_int64(row, 1);
    char pattern[TEXT_MAX + 1] = "";
    int64_t keys[KEYS_MAX];
    size_t number = 0, size = 0, pattern_size = 0;
    if (tally->read++ == FAILURES_MAX) { // one more than is counted
        tally->is_cut = true;
        return STATUS_OK;
    }
    if (text) {
        size = text_cut(text, (size_t)sqlite3_column_bytes(row, 0), TEXT_MAX);
        pattern_size = text_pattern(pattern, text, size);
    }
    keys[0] = (int64_t)tally->kind;
    keys[1] = text ? hash_of(pattern, pattern_size) : -1;
    for (unsigned i = 0; i < tally->query->group_count; i++)
        keys[2 + i] = sqlite3_column_type(row, 2 + (int)i) == SQLITE_NULL
                          ? GROUP_KEY_NONE
                          : sqlite3_column_int64(row, 2 + (int)i);
    enum status status = STATUS_OK;
    if (!key_index_find(&tally->index, keys, &number)) {
        if (tally->index.count == ENTRIES_MAX)
            status = shrink(tally);
        if (status == STATUS_OK)
            status = key_index_add(&tally->index, keys, &number);
        if (status != STATUS_OK)
            return error_no_memory(err, "errors");
        struct entry *entry = &tally->entries[number];
        *entry = (struct entry){.has_text = text != NULL};
        memcpy(entry->keys, keys, tally->index.width * sizeof *keys);
        memcpy(entry->pattern, pattern, pattern_size + 1);
        memcpy(entry->example, text ? text : "", size); // the newest is read first
    }
    add(&tally->entries[number], 1, at_ns, at_ns);
    return STATUS_OK;
}

static enum status scan(struct store *store, const struct source *source, struct tally *tally,
                        struct error *err)
{
    const struct query *query = tally->query;
    enum query_dimension missing;
    // Records without a model match no filter by model.
    if (!filter_applies(source->kind, &query->filter, &missing))
        return STATUS_OK;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT t.error, t.started_ns");
    for (unsigned i = 0; i < query->group_count; i++) {
        const char *dimension = schema_dimension(source->kind, query->group_by[i]);
        sqlite3_str_appendf(sql, ", %s", dimension ? dimension : "NULL");
    }
    sqlite3_str_appendf(sql, " FROM %s t INDEXED BY %s", record_kind_info(source->kind)->name,
                        source->index);
    filter_where(sql, source->kind, &query->filter);
    sqlite3_str_appendf(sql, " AND %s ORDER BY t.started_ns DESC LIMIT %d", source->failed,
                        FAILURES_MAX + 1);
    tally->kind = source->kind;
    tally->read = 0;
    return reader_scan(store, sql, &query->filter, on_failure, tally, err);
}

// ---- The answer ------------------------------------------------------------------------

static const struct answer_column figures[] = {
    {"kind", UNIT_NONE},    {"error", UNIT_NONE},   {"count", UNIT_COUNT}, {"first_ns", UNIT_TIME},
    {"last_ns", UNIT_TIME}, {"example", UNIT_NONE}, {"note", UNIT_NONE},
};
enum { FIGURE_COUNT = sizeof figures / sizeof *figures };

static enum status new_answer(const struct query *query, struct result **out, struct error *err)
{
    struct answer_column columns[QUERY_DIMENSION_COUNT + FIGURE_COUNT];
    for (unsigned i = 0; i < query->group_count; i++)
        columns[i] = (struct answer_column){query_dimension_name(query->group_by[i]), UNIT_NONE};
    memcpy(columns + query->group_count, figures, sizeof figures);
    return answer_new(out, columns, query->group_count + FIGURE_COUNT, err);
}

static void put_counts(struct result *answer, const struct entry *entry, const char *note)
{
    answer_int(answer, "count", entry->count);
    answer_int(answer, "first_ns", entry->first_ns);
    answer_int(answer, "last_ns", entry->last_ns);
    if (note[0])
        answer_text(answer, "note", note);
}

static enum status put_entry(struct store *store, const struct query *query,
                             const struct entry *entry, const char *note, struct result *answer,
                             struct error *err)
{
    enum status status = STATUS_OK;
    answer_row(answer);
    for (unsigned i = 0; i < query->group_count && status == STATUS_OK; i++)
        status = answer_key(store, answer, i, query->group_by[i], entry->keys[2 + i], err);
    answer_text(answer, "kind", record_kind_info((enum record_kind)entry->keys[0])->name);
    if (entry->has_text) {
        answer_text(answer, "error", entry->pattern);
        answer_text(answer, "example", entry->example);
    }
    put_counts(answer, entry, note);
    return status;
}

// What the counts lack, in words; "": nothing.
static void write_note(char note[NOTE_SIZE], const struct tally *tally, int64_t expired_ns)
{
    char expired[EXPIRY_TEXT_SIZE];
    const char *const parts[] = {
        expired_ns ? expiry_info_text(expired, expired_ns) : NULL,
        tally->is_cut ? "the newest 500,000 failures of each kind" : NULL,
        tally->was_full ? "too many different texts: some failures of these are in other" : NULL,
    };
    int used = 0;
    note[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i])
            used += snprintf(note + used, (size_t)(NOTE_SIZE - used), "%s%s", used ? "; " : "",
                             parts[i]);
}

static enum status write_answer(struct store *store, struct tally *tally, int64_t expired_ns,
                                struct result *answer, struct error *err)
{
    const uint32_t limit = tally->query->limit;
    const size_t most = limit == 0 ? ROWS_USUAL : limit < ROWS_MAX ? limit : ROWS_MAX;
    char note[NOTE_SIZE];
    enum status status = STATUS_OK;
    write_note(note, tally, expired_ns);
    qsort(tally->entries, tally->index.count, sizeof *tally->entries, by_count);
    for (size_t i = 0; i < tally->index.count && status == STATUS_OK; i++) {
        const struct entry *entry = &tally->entries[i];
        if (i >= most) {
            add(&tally->rest, entry->count, entry->first_ns, entry->last_ns);
            continue;
        }
        status = put_entry(store, tally->query, entry, note, answer, err);
    }
    if (status != STATUS_OK || tally->rest.count == 0)
        return status;
    answer_row(answer);
    answer_text(answer, "error", "other");
    put_counts(answer, &tally->rest, note);
    return status;
}

// A dimension must be one of some kind that can fail; all that are found have the same status.
static enum status check(const struct query *query, struct error *err)
{
    for (unsigned d = 0; d < QUERY_DIMENSION_COUNT; d++) {
        const enum query_dimension dimension = (enum query_dimension)d;
        bool is_used = query->filter.by[d][0] != '\0', is_known = false;
        for (unsigned i = 0; i < query->group_count; i++)
            is_used = is_used || query->group_by[i] == dimension;
        for (unsigned i = 0; i < SOURCES; i++)
            is_known = is_known || schema_dimension(sources[i].kind, dimension);
        if (is_used && (!is_known || dimension == QUERY_BY_STATUS))
            return error_set(err, STATUS_INVALID, "errors have no %s",
                             query_dimension_name(dimension));
    }
    return STATUS_OK;
}

static enum status count_all(struct store *store, struct tally *tally, int64_t *expired_ns,
                             struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < SOURCES && status == STATUS_OK; i++) {
        int64_t until_ns = 0;
        status = scan(store, &sources[i], tally, err);
        if (status == STATUS_OK)
            status =
                expiry_info_until(store, sources[i].kind, &tally->query->filter, &until_ns, err);
        *expired_ns = until_ns > *expired_ns ? until_ns : *expired_ns;
    }
    if (status == STATUS_OK && tally->index.count == 0 && tally->rest.count == 0)
        status = *expired_ns
                     ? expiry_info_error(*expired_ns, err)
                     : error_set(err, STATUS_NO_DATA, "no failures in the store that match");
    return status;
}

enum status query_errors(struct store *store, const struct query *query, struct result **out,
                         struct error *err)
{
    struct tally tally = {.query = query, .index.width = 2 + query->group_count};
    int64_t expired_ns = 0;
    enum status status = check(query, err);
    if (status != STATUS_OK)
        return status;
    tally.entries = malloc(ENTRIES_MAX * sizeof *tally.entries);
    if (!tally.entries)
        return error_no_memory(err, "errors");
    status = count_all(store, &tally, &expired_ns, err);
    if (status == STATUS_OK)
        status = new_answer(query, out, err);
    if (status == STATUS_OK)
        status = write_answer(store, &tally, expired_ns, *out, err);
    key_index_deinit(&tally.index);
    free(tally.entries);
    return status;
}
