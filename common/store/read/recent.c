#include "common/store/read/recent.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/key_index.h"
#include "common/core/base/saturate.h"
#include "common/core/record/record.h"
#include "common/core/stats/sketch.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema.h"
#include "common/store/schema/schema_select.h"
#include "common/store/sqlite/database.h"

// The newest requests that tell a new session what runs answer with.
enum { ANSWERS_OF = 20000 };

// More requests than this are not read one after another, and of more runs, models and devices the
// old ones are forgotten.
enum { BEHIND_MAX = 2 * ANSWERS_OF };

// After too many requests it is tried again when so much time has passed.
#define RETRY_NS INT64_C(60000000000)

// What a run answered with: the times of the request that ended last.
struct answer {
    int64_t run, model, device;
    int64_t ended_ns, started_ns;
};

// What is kept of a kind.
struct kept {
    struct store_recent *of;
    struct recent all;
    size_t room;
    bool is_full;             // there were more than RECENT_MAX
    int64_t full_ns;          // as of when
    int64_t acts, expired_ns; // the last act in the audit log, and until when records have expired
    int64_t id, time_ns;      // of the last record, and its start
    int64_t window_ns;        // how long a record is kept; 0: none is
};

struct store_recent {
    struct kept kinds[RECENT_KINDS];
    int64_t as_of_ns;       // of the last recent_keep
    struct sketch *scratch; // of a record of gaps
    int64_t covered_ns;     // as recent_covered_ns
    int64_t looked_at;      // requests, since covered_ns began
    struct key_index runs;  // run, model and device
    struct answer *answers;
    size_t answer_room;
};

static void free_recent(struct store_recent *recent)
{
    key_index_deinit(&recent->runs);
    free(recent->answers);
    sketch_free(recent->scratch);
    for (unsigned kind = 0; kind < RECENT_KINDS; kind++)
        free(recent->kinds[kind].all.items);
    free(recent);
}

// ---- Kinds ----------------------------------------------------------------------------------

// Columns of both kinds, and of each.
enum { ID, STARTED, MODEL, PLACED, HOST, OF_KIND };
enum { RUN = OF_KIND, DEVICE, E2E, TTFT, FINISH, PREFILL };
enum { PROMPT = PREFILL + 1, CACHED, GENERATED, ITL_MAX, ITEMS, SPEED, TPOT };
enum { DURATION = OF_KIND, SKETCH };

#define COLUMNS "t.id, t.started_ns, t.model, " SCHEMA_IS_PLACED

static void append_ratio(sqlite3_str *sql, const char *name)
{
    unsigned count = 0;
    const struct query_metric *metric = query_metrics(&count);
    while (metric->kind != RECORD_KIND_INFERENCE || strcmp(metric->name, name) != 0)
        metric++;
    sqlite3_str_appendall(sql, ", ");
    schema_select_metric(sql, metric);
}

static void append_request_columns(sqlite3_str *sql)
{
    sqlite3_str_appendall(sql, "t.run, t.device, t.e2e_ns, t.ttft_ns, t.finish, t.prefill_ns,"
                               " t.prompt_tokens, t.cached_prompt_tokens, t.generated_tokens,"
                               " t.itl_max_ns, t.items");
    append_ratio(sql, "tokens_per_second");
    append_ratio(sql, "tpot_ns");
}

static void set_request(const struct kept *kept, size_t place, sqlite3_stmt *row)
{
    kept->all.requests[place] = (struct recent_request){
        .e2e_ns = sqlite3_column_int64(row, E2E),
        .ttft_ns = reader_integer(row, TTFT),
        .finish = sqlite3_column_int64(row, FINISH),
        .prefill_ns = reader_integer(row, PREFILL),
        .prompt_tokens = reader_integer(row, PROMPT),
        .cached_prompt_tokens = reader_integer(row, CACHED),
        .generated_tokens = reader_integer(row, GENERATED),
        .itl_max_ns = reader_integer(row, ITL_MAX),
        .items = reader_integer(row, ITEMS),
        .tokens_per_second = reader_real(row, SPEED),
        .tpot_ns = reader_real(row, TPOT),
    };
}

static void append_gaps_columns(sqlite3_str *sql)
{
    sqlite3_str_appendall(sql, "t.duration_ns, t.sketch");
}

static void set_gaps(const struct kept *kept, size_t place, sqlite3_stmt *row)
{
    struct aggregate gaps = {.count = 0};
    aggregate_add_encoded(&gaps, kept->of->scratch, sqlite3_column_blob(row, SKETCH),
                          (size_t)sqlite3_column_bytes(row, SKETCH));
    kept->all.gaps[place] = (struct recent_gaps){.duration_ns = sqlite3_column_int64(row, DURATION),
                                                 .count = (int64_t)gaps.count};
}

static const struct {
    enum record_kind kind;
    int64_t reach_ns; // so long before the window records begin that matter in it
    size_t size;
    void (*append_columns)(sqlite3_str *sql);
    void (*set)(const struct kept *kept, size_t place, sqlite3_stmt *row);
} kinds[RECENT_KINDS] = {
    [RECENT_REQUESTS] = {RECORD_KIND_INFERENCE, 0, sizeof(struct recent_request),
                         append_request_columns, set_request},
    [RECENT_GAPS] = {RECORD_KIND_ITL, RECENT_GAPS_NS_MAX, sizeof(struct recent_gaps),
                     append_gaps_columns, set_gaps},
};

static enum recent_kind kind_of(const struct kept *kept)
{
    return (enum recent_kind)(kept - kept->of->kinds);
}

// What the items of both kinds begin with.
struct head {
    int64_t model, host, started_ns;
};

static int by_group(const void *a, const void *b)
{
    struct head left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    if (left.model != right.model)
        return left.model < right.model ? -1 : 1;
    if (left.host != right.host)
        return left.host < right.host ? -1 : 1;
    return (left.started_ns > right.started_ns) - (left.started_ns < right.started_ns);
}

// Puts records of a model and host side by side: whoever adds them up finds their group at once.
// What comes later stands at the end until the next time.
static void sort(const struct kept *kept)
{
    if (kept->all.count > 0)
        qsort(kept->all.items, kept->all.count, kinds[kind_of(kept)].size, by_group);
}

static void drop_before(struct kept *kept, int64_t since_ns)
{
    const size_t size = kinds[kind_of(kept)].size;
    char *items = kept->all.items;
    size_t left = 0;
    for (size_t i = 0; i < kept->all.count; i++) {
        struct head head;
        memcpy(&head, items + i * size, sizeof head);
        if (head.started_ns >= since_ns)
            memmove(items + left++ * size, items + i * size, size);
    }
    kept->all.count = left;
    kept->all.since_ns = since_ns;
    sort(kept);
}

// ---- Reading --------------------------------------------------------------------------------

static enum status on_answer(void *context, sqlite3_stmt *row, struct error *err)
{
    struct store_recent *recent = context;
    const int64_t key[] = {sqlite3_column_int64(row, RUN), sqlite3_column_int64(row, MODEL),
                           sqlite3_column_int64(row, DEVICE)};
    const int64_t started_ns = sqlite3_column_int64(row, STARTED);
    const int64_t ended_ns = saturate_add(started_ns, sqlite3_column_int64(row, E2E));
    const size_t known = recent->runs.count;
    size_t number = 0;
    if (key_index_add(&recent->runs, key, &number) != STATUS_OK ||
        !ARRAY_RESERVE(&recent->answers, &recent->answer_room, number + 1))
        return error_no_memory(err, "store");
    struct answer *answer = &recent->answers[number];
    if (number == known)
        *answer = (struct answer){.run = key[0], .model = key[1], .device = key[2]};
    if (sqlite3_column_int(row, PLACED) && ended_ns > answer->ended_ns) {
        answer->ended_ns = ended_ns;
        answer->started_ns = started_ns;
    }
    if (recent->looked_at++ == 0 || started_ns < recent->covered_ns)
        recent->covered_ns = started_ns;
    return STATUS_OK;
}

static enum status on_record(void *context, sqlite3_stmt *row, struct error *err)
{
    struct kept *kept = context;
    struct recent *all = &kept->all;
    const size_t size = kinds[kind_of(kept)].size;
    const struct head head = {sqlite3_column_int64(row, MODEL), sqlite3_column_int64(row, HOST),
                              sqlite3_column_int64(row, STARTED)};
    if (kept->is_full || !sqlite3_column_int(row, PLACED) || head.started_ns < all->since_ns)
        return STATUS_OK;
    kept->is_full = all->count == RECENT_MAX;
    if (kept->is_full)
        return STATUS_OK;
    if (!array_reserve(&all->items, &kept->room, all->count + 1, size))
        return error_no_memory(err, "store");
    kinds[kind_of(kept)].set(kept, all->count, row);
    memcpy((char *)all->items + all->count++ * size, &head, sizeof head);
    return STATUS_OK;
}

static enum status on_new(void *context, sqlite3_stmt *row, struct error *err)
{
    struct kept *kept = context;
    kept->id = sqlite3_column_int64(row, ID);
    kept->time_ns = sqlite3_column_int64(row, STARTED);
    enum status status =
        kind_of(kept) == RECENT_REQUESTS ? on_answer(kept->of, row, err) : STATUS_OK;
    return status == STATUS_OK ? on_record(kept, row, err) : status;
}

static enum status read_answers(struct store_recent *recent, struct store *store, struct error *err)
{
    key_index_clear(&recent->runs);
    recent->looked_at = recent->covered_ns = 0;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT " COLUMNS ", 0, t.run, t.device, t.e2e_ns"
                        " FROM main.inference t ORDER BY t.id DESC LIMIT %d",
                        ANSWERS_OF);
    enum status status = reader_scan(store, sql, NULL, on_answer, recent, err);
    if (recent->looked_at < ANSWERS_OF)
        recent->covered_ns = 0;
    return status;
}

static sqlite3_str *new_select(const struct kept *kept, struct store *store)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT " COLUMNS ", o.host, ");
    kinds[kind_of(kept)].append_columns(sql);
    sqlite3_str_appendf(sql, " FROM main.%s t CROSS JOIN main.run o ON o.run = t.run",
                        record_kind_info(kinds[kind_of(kept)].kind)->name);
    return sql;
}

static enum status read_window(struct kept *kept, struct store *store, int64_t since_ns,
                               struct error *err)
{
    kept->all.count = 0;
    kept->all.since_ns = since_ns;
    kept->is_full = false;
    sqlite3_str *sql = new_select(kept, store);
    sqlite3_str_appendf(sql, " WHERE t.started_ns >= $1 AND " SCHEMA_IS_PLACED " LIMIT %d",
                        RECENT_MAX + 1);
    enum status status = reader_scan_with(store, sql, NULL, &since_ns, 1, on_record, kept, err);
    sort(kept);
    return status;
}

static enum status read_new(struct kept *kept, struct store *store, struct error *err)
{
    sqlite3_str *sql = new_select(kept, store);
    sqlite3_str_appendall(sql, " WHERE t.id > $1 ORDER BY t.id");
    const int64_t after = kept->id;
    return reader_scan_with(store, sql, NULL, &after, 1, on_new, kept, err);
}

// ---- Answers --------------------------------------------------------------------------------

const char *recent_answers(const struct query_filter *filter)
{
    return filter->until_ns == 0
               ? "json_each(recent_answers())"
               : "(SELECT json_array(run, model, device, max(started_ns), max(ended_ns)) AS value"
                 " FROM (SELECT t.run, t.model, t.device, t.started_ns,"
                 "  t.started_ns + t.e2e_ns AS ended_ns FROM main.inference t"
                 "  WHERE t.started_ns < :until AND " SCHEMA_IS_PLACED
                 "  ORDER BY t.started_ns DESC LIMIT 20000) GROUP BY run, model, device)";
}

int64_t recent_covered_ns(const struct store *store)
{
    return store->recent->covered_ns;
}

static void append_answers(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count, (void)values;
    const struct store *store = sqlite3_user_data(context);
    const struct store_recent *recent = store->recent;
    sqlite3_str *text = sqlite3_str_new(store->db);
    const char *separator = "[";
    for (size_t i = 0; i < recent->runs.count; i++) {
        const struct answer *answer = &recent->answers[i];
        sqlite3_str_appendf(text, "%s[%lld,%lld,%lld,%lld,%lld]", separator, (long long)answer->run,
                            (long long)answer->model, (long long)answer->device,
                            (long long)answer->started_ns, (long long)answer->ended_ns);
        separator = ",";
    }
    sqlite3_str_appendall(text, *separator == '[' ? "[]" : "]");
    char *whole = sqlite3_str_finish(text);
    if (whole)
        sqlite3_result_text(context, whole, -1, sqlite3_free);
    else
        sqlite3_result_error_nomem(context);
}

// ---- Keeping --------------------------------------------------------------------------------

struct state {
    int64_t acts, id, time_ns, expired_ns; // of the last record, and until when they have expired
    bool is_there;                         // the last one that was read
};

static enum status on_state(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    *(struct state *)context = (struct state){
        sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2),
        sqlite3_column_int64(row, 3), sqlite3_column_int(row, 4)};
    return STATUS_OK;
}

static enum status read_state(const struct kept *kept, struct store *store, struct state *state,
                              struct error *err)
{
    const enum record_kind kind = kinds[kind_of(kept)].kind;
    const char *name = record_kind_info(kind)->name;
    const int64_t of[] = {kept->id, kept->time_ns, kind};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT (SELECT max(id) FROM main.admin), max(id), started_ns,"
                        " (SELECT until_ns FROM main.expiry WHERE kind = $3), EXISTS (SELECT 1"
                        " FROM main.%s WHERE id = $1 AND started_ns = $2) FROM main.%s",
                        name, name);
    return reader_scan_with(store, sql, NULL, of, 3, on_state, state, err);
}

static bool is_current(const struct kept *kept, const struct state *state)
{
    return state->is_there && state->acts == kept->acts && state->expired_ns == kept->expired_ns &&
           state->id - kept->id <= BEHIND_MAX && kept->of->runs.count <= BEHIND_MAX;
}

// After a failure nothing is current.
static enum status finish(struct kept *kept, enum status status)
{
    if (status != STATUS_OK)
        kept->id = 0;
    return status;
}

static enum status begin(struct kept *kept, struct store *store, const struct state *state,
                         struct error *err)
{
    kept->all.count = 0;
    kept->all.since_ns = INT64_MAX; // until there is a window
    kept->window_ns = 0;
    kept->is_full = false;
    kept->acts = state->acts;
    kept->expired_ns = state->expired_ns;
    kept->id = state->id;
    kept->time_ns = state->time_ns;
    return kind_of(kept) == RECENT_REQUESTS ? read_answers(kept->of, store, err) : STATUS_OK;
}

// Reads the window's records where they are not kept; drops what began before the window once that
// is a quarter of it.
static enum status keep_window(struct kept *kept, struct store *store, int64_t window_ns,
                               struct error *err)
{
    const int64_t as_of_ns = kept->of->as_of_ns, reach_ns = kinds[kind_of(kept)].reach_ns;
    const bool retries = kept->is_full && as_of_ns - kept->full_ns > RETRY_NS;
    if (window_ns > 0 && (as_of_ns - window_ns - reach_ns < kept->all.since_ns || retries)) {
        kept->window_ns = window_ns;
        kept->full_ns = as_of_ns;
        return read_window(kept, store, as_of_ns - window_ns - reach_ns, err);
    }
    const int64_t since_ns = as_of_ns - kept->window_ns - reach_ns;
    if (kept->window_ns > 0 && !kept->is_full &&
        since_ns - kept->all.since_ns > kept->window_ns / 4)
        drop_before(kept, since_ns);
    return STATUS_OK;
}

static enum status make(struct store *store, struct error *err)
{
    if (sqlite3_create_function(store->db, "recent_answers", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                store, append_answers, NULL, NULL) != SQLITE_OK)
        return database_error(store->db, "store", err);
    struct store_recent *recent = calloc(1, sizeof *recent);
    if (!recent || sketch_new(&recent->scratch) != STATUS_OK) {
        free(recent);
        return error_no_memory(err, "store");
    }
    recent->runs.width = 3;
    for (unsigned kind = 0; kind < RECENT_KINDS; kind++)
        recent->kinds[kind].of = recent;
    store->recent = recent;
    store->free_recent = free_recent;
    return STATUS_OK;
}

static enum status keep(struct kept *kept, struct store *store, int64_t window_ns,
                        struct error *err)
{
    struct state state = {0};
    enum status status = read_state(kept, store, &state, err);
    if (status != STATUS_OK)
        return status;
    status =
        is_current(kept, &state) ? read_new(kept, store, err) : begin(kept, store, &state, err);
    if (status == STATUS_OK)
        status = keep_window(kept, store, window_ns, err);
    return finish(kept, status);
}

enum status recent_keep(struct store *store, int64_t as_of_ns, int64_t window_ns, struct error *err)
{
    enum status status = store->recent ? STATUS_OK : make(store, err);
    for (unsigned kind = 0; kind < RECENT_KINDS && status == STATUS_OK; kind++) {
        store->recent->as_of_ns = as_of_ns;
        status = keep(&store->recent->kinds[kind], store, window_ns, err);
    }
    return status;
}

enum status recent_find(const struct recent **out, struct store *store, enum recent_kind kind,
                        const struct query *query, struct error *err)
{
    struct kept *kept = store->recent ? &store->recent->kinds[kind] : NULL;
    const int64_t since_ns = query->filter.since_ns;
    struct query_filter names = query->filter;
    struct state state = {0};
    names.since_ns = names.until_ns = 0;
    // A window that begins after the last NOW is not looked for: charts alone keep nothing.
    bool fits = kept && !kept->is_full && kept->expired_ns <= since_ns &&
                since_ns - kinds[kind].reach_ns >= kept->all.since_ns &&
                since_ns <= kept->of->as_of_ns && !query_filter_narrows(&names);
    for (unsigned i = 0; fits && i < query->group_count; i++)
        fits = query->group_by[i] == QUERY_BY_MODEL || query->group_by[i] == QUERY_BY_HOST;
    *out = NULL;
    if (!fits)
        return STATUS_OK;
    enum status status = read_state(kept, store, &state, err);
    if (status != STATUS_OK || !is_current(kept, &state))
        return status;
    status = finish(kept, read_new(kept, store, err));
    *out = status != STATUS_OK || kept->is_full ? NULL : &kept->all;
    return status;
}
