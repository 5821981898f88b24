#include "common/store/sealed_walk.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/seal_columns.h"

// A row's place in the order of time.
struct timed {
    int64_t started_ns, id;
    uint32_t row;
};

// An open segment, and how far the walk is in it.
struct sealed_sorted {
    struct sealed_opened *opened;
    struct timed *rows; // rising
    uint32_t count, left;
};

enum status sealed_walk_failed(const struct sealed_opened *opened, enum status status,
                               struct error *err)
{
    if (status == STATUS_NOMEM)
        return error_set(err, status, "store: out of memory");
    return sealed_is_damaged(&opened->segment, "their bytes make no sense", err);
}

static bool covers(const struct sealed_span *span, int64_t first, int64_t last)
{
    return span->first <= first && last <= span->last;
}

// ---- Segments -------------------------------------------------------------------------

void sealed_walk_init(struct sealed_walk *walk, sqlite3 *db, struct sealed_cache *cache,
                      enum record_kind kind)
{
    *walk = (struct sealed_walk){.db = db,
                                 .cache = cache,
                                 .kind = kind,
                                 .ids = {INT64_MIN, INT64_MAX},
                                 .times = {INT64_MIN, INT64_MAX}};
}

static void close_sorted(struct sealed_walk *walk, unsigned place)
{
    sealed_cache_give(walk->cache, walk->open[place].opened);
    free(walk->open[place].rows);
    walk->open[place] = walk->open[--walk->open_count];
}

void sealed_walk_deinit(struct sealed_walk *walk)
{
    while (walk->open_count > 0)
        close_sorted(walk, walk->open_count - 1);
    if (!walk->by_time)
        sealed_cache_give(walk->cache, walk->at);
    free(walk->open);
    (void)sqlite3_finalize(walk->segments);
    memset(walk, 0, sizeof *walk);
}

// The next segment of the list; id 0 where there is none.
static enum status step_list(struct sealed_walk *walk, struct sealed_segment *out,
                             struct error *err)
{
    *out = (struct sealed_segment){0};
    const int rc = sqlite3_step(walk->segments);
    if (rc == SQLITE_DONE)
        return STATUS_OK;
    if (rc != SQLITE_ROW)
        return database_error(walk->db, "store", err);
    *out = (struct sealed_segment){
        .id = sqlite3_column_int64(walk->segments, 0),
        .kind = (int64_t)walk->kind,
        .first_id = sqlite3_column_int64(walk->segments, 1),
        .last_id = sqlite3_column_int64(walk->segments, 2),
        .first_started_ns = sqlite3_column_int64(walk->segments, 3),
        .last_started_ns = sqlite3_column_int64(walk->segments, 4),
        .rows = sqlite3_column_int64(walk->segments, 5),
    };
    return STATUS_OK;
}

enum status sealed_walk_begin(struct sealed_walk *walk, struct error *err)
{
#define LIST                                                                                       \
    "SELECT id, first_id, last_id, first_started_ns, last_started_ns, rows FROM main.sealed"       \
    " WHERE kind = ?1 AND last_id >= ?2 AND first_id <= ?3 AND last_started_ns >= ?4"              \
    " AND first_started_ns <= ?5 ORDER BY "
    static const char *const orders[2][2] = {
        {LIST "last_id", LIST "last_id DESC"},
        {LIST "first_started_ns", LIST "last_started_ns DESC"},
    };
#undef LIST
    enum status status = database_prepare(walk->db, &walk->segments,
                                          orders[walk->by_time][walk->is_falling], false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(walk->segments, 1, (int64_t)walk->kind);
    (void)sqlite3_bind_int64(walk->segments, 2, walk->ids.first);
    (void)sqlite3_bind_int64(walk->segments, 3, walk->ids.last);
    (void)sqlite3_bind_int64(walk->segments, 4, walk->times.first);
    (void)sqlite3_bind_int64(walk->segments, 5, walk->times.last);
    return walk->by_time ? step_list(walk, &walk->next, err) : STATUS_OK;
}

// ---- By id ----------------------------------------------------------------------------

static enum status enter(struct sealed_walk *walk, struct error *err)
{
    struct sealed_segment segment;
    sealed_cache_give(walk->cache, walk->at);
    walk->at = NULL;
    enum status status = step_list(walk, &segment, err);
    if (status == STATUS_OK && segment.id == 0)
        return STATUS_NO_DATA;
    if (status == STATUS_OK)
        status = sealed_cache_take(walk->cache, walk->db, &segment, &walk->at, err);
    if (status == STATUS_OK)
        walk->row = walk->is_falling ? seal_reader_count(walk->at->reader) - 1 : 0;
    return status;
}

static enum status step_by_id(struct sealed_walk *walk, struct error *err)
{
    if (!walk->at)
        return enter(walk, err);
    if (walk->is_falling && walk->row > 0)
        walk->row--;
    else if (!walk->is_falling && walk->row + 1 < seal_reader_count(walk->at->reader))
        walk->row++;
    else
        return enter(walk, err);
    return STATUS_OK;
}

// ---- By time --------------------------------------------------------------------------

static int compare(const void *a, const void *b)
{
    const struct timed *x = a, *y = b;
    if (x->started_ns != y->started_ns)
        return x->started_ns < y->started_ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static enum status sort_rows(struct sealed_sorted *sorted)
{
    bool is_absent = false;
    sorted->count = sorted->left = seal_reader_count(sorted->opened->reader);
    sorted->rows = malloc(sorted->count * sizeof *sorted->rows);
    enum status status = sorted->rows ? STATUS_OK : STATUS_NOMEM;
    for (uint32_t i = 0; i < sorted->count && status == STATUS_OK; i++) {
        struct timed *row = &sorted->rows[i];
        row->row = i;
        status = sealed_value(sorted->opened, SEAL_STARTED, i, &row->started_ns, &is_absent);
        if (status == STATUS_OK)
            status = sealed_value(sorted->opened, SEAL_ID, i, &row->id, &is_absent);
    }
    if (status == STATUS_OK)
        qsort(sorted->rows, sorted->count, sizeof *sorted->rows, compare);
    return status;
}

static enum status open_next(struct sealed_walk *walk, struct error *err)
{
    if (walk->open_count == walk->open_room) {
        const unsigned room = walk->open_room ? 2 * walk->open_room : 4;
        struct sealed_sorted *bigger = realloc(walk->open, room * sizeof *bigger);
        if (!bigger)
            return error_set(err, STATUS_NOMEM, "store: out of memory");
        walk->open = bigger;
        walk->open_room = room;
    }
    struct sealed_sorted *sorted = &walk->open[walk->open_count];
    *sorted = (struct sealed_sorted){0};
    enum status status =
        sealed_cache_take(walk->cache, walk->db, &walk->next, &sorted->opened, err);
    if (status != STATUS_OK)
        return status;
    walk->open_count++;
    status = sort_rows(sorted);
    if (status != STATUS_OK)
        return sealed_walk_failed(sorted->opened, status, err);
    return step_list(walk, &walk->next, err);
}

static const struct timed *head_of(const struct sealed_walk *walk, unsigned place)
{
    const struct sealed_sorted *sorted = &walk->open[place];
    return &sorted->rows[walk->is_falling ? sorted->left - 1 : sorted->count - sorted->left];
}

// The place of the open segment whose next row comes first.
static unsigned find_first(const struct sealed_walk *walk)
{
    unsigned best = 0;
    for (unsigned i = 1; i < walk->open_count; i++)
        if ((compare(head_of(walk, i), head_of(walk, best)) < 0) != walk->is_falling)
            best = i;
    return best;
}

// Whether a segment that is not open yet may have a row that comes before.
static bool may_come_first(const struct sealed_walk *walk)
{
    if (walk->next.id == 0)
        return false;
    if (walk->open_count == 0)
        return true;
    const int64_t head_ns = head_of(walk, find_first(walk))->started_ns;
    return walk->is_falling ? walk->next.last_started_ns >= head_ns
                            : walk->next.first_started_ns <= head_ns;
}

static enum status step_by_time(struct sealed_walk *walk, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = walk->open_count; i-- > 0;)
        if (walk->open[i].left == 0)
            close_sorted(walk, i);
    while (status == STATUS_OK && may_come_first(walk))
        status = open_next(walk, err);
    if (status != STATUS_OK)
        return status;
    if (walk->open_count == 0)
        return STATUS_NO_DATA;
    const unsigned first = find_first(walk);
    walk->at = walk->open[first].opened;
    walk->row = head_of(walk, first)->row;
    walk->open[first].left--;
    return STATUS_OK;
}

// ---- Both -----------------------------------------------------------------------------

// Whether the row is within the spans; where its segment is, nothing needs decoding.
static enum status is_within(const struct sealed_walk *walk, bool *is_in)
{
    const struct sealed_segment *segment = &walk->at->segment;
    int64_t value = 0;
    bool is_absent = false;
    enum status status = STATUS_OK;
    *is_in = true;
    if (!covers(&walk->ids, segment->first_id, segment->last_id)) {
        status = sealed_value(walk->at, SEAL_ID, walk->row, &value, &is_absent);
        *is_in = covers(&walk->ids, value, value);
    }
    if (status == STATUS_OK && *is_in &&
        !covers(&walk->times, segment->first_started_ns, segment->last_started_ns)) {
        status = sealed_value(walk->at, SEAL_STARTED, walk->row, &value, &is_absent);
        *is_in = covers(&walk->times, value, value);
    }
    return status;
}

enum status sealed_walk_next(struct sealed_walk *walk, struct error *err)
{
    enum status status = STATUS_OK;
    bool is_in = false;
    while (status == STATUS_OK && !is_in) {
        status = walk->by_time ? step_by_time(walk, err) : step_by_id(walk, err);
        if (status != STATUS_OK)
            return status;
        status = is_within(walk, &is_in);
        if (status != STATUS_OK)
            return sealed_walk_failed(walk->at, status, err);
    }
    return status;
}
