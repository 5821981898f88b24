// Rollups by way of the store's shelf (shelf.h).
//
// A bucket on the shelf is used as it is where the store is still in the state it was last
// seen in ("PRAGMA data_version", read in the query's transaction: it changes with every
// commit of others).  Where it is not, the marks of the bucket's rows are read, and compared
// with those on the shelf; only what differs is read and taken apart.
#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/cell.h"
#include "common/store/gather_parts.h"

// Of longer pieces, such as a step's of a day in minutes, each bucket is read once at most.
enum { BUCKETS_MAX = 256 };

// What a bucket may have to be kept: cells, and words of their counts.
enum { CELLS_MAX = 4096, WORDS_MAX = 1 << 19, WORDS_OF_SKETCH = 4096 };

enum freshness { MISSING, STALE, FRESH };

// A piece at work.
struct shelving {
    struct gathering *gathering;
    struct shelf *shelf;
    struct cell_key key; // the series, and the start where none is given, are not looked at
    uint64_t state;
    size_t count;
    int64_t starts[BUCKETS_MAX];
    enum freshness freshness[BUCKETS_MAX];
};

static struct cell_key key_of(const struct shelving *shelving, size_t place)
{
    struct cell_key key = shelving->key;
    key.started_ns = shelving->starts[place];
    return key;
}

static struct shelf_bucket *bucket_at(const struct shelving *shelving, size_t place)
{
    const struct cell_key key = key_of(shelving, place);
    return shelf_find(shelving->shelf, &key);
}

static enum status take_state(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    uint64_t *state = context;
    *state = (uint64_t)sqlite3_column_int64(row, 0);
    return STATUS_OK;
}

static enum status read_state(struct shelving *shelving, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(shelving->gathering->store->db);
    sqlite3_str_appendall(sql, "PRAGMA data_version");
    return reader_scan(shelving->gathering->store, sql, NULL, take_state, &shelving->state, err);
}

// False where there are too many.
static bool list_buckets(struct shelving *shelving, struct rollup_span span)
{
    int64_t start = span.first_ns;
    shelving->count = 0;
    for (;;) {
        if (shelving->count == BUCKETS_MAX)
            return false;
        const size_t place = shelving->count++;
        shelving->starts[place] = start;
        const struct shelf_bucket *bucket = bucket_at(shelving, place);
        shelving->freshness[place] = !bucket                            ? MISSING
                                     : bucket->state == shelving->state ? FRESH
                                                                        : STALE;
        const int64_t next = rollup_next(shelving->key.level, start);
        if (next == INT64_MAX || next > span.last_ns)
            return true;
        start = next;
    }
}

// Runs `columns` of the rows of the buckets from `first` to `last`.
static enum status scan_rows(const struct shelving *shelving, const char *columns, size_t first,
                             size_t last, row_take *take, void *context, struct error *err)
{
    const int64_t of[] = {shelving->key.metric, shelving->key.grouping, shelving->key.level,
                          shelving->starts[first],
                          rollup_next(shelving->key.level, shelving->starts[last]) - 1};
    sqlite3_str *sql = sqlite3_str_new(shelving->gathering->store->db);
    sqlite3_str_appendf(sql,
                        "SELECT started_ns, series, %s FROM rollup WHERE metric = $1"
                        " AND grouping = $2 AND level = $3 AND started_ns BETWEEN $4 AND $5"
                        " ORDER BY started_ns, series",
                        columns);
    return reader_scan_bound(shelving->gathering->store, sql, of, 5, take, context, err);
}

// ---- What may have changed -------------------------------------------------------------

// Walks over the rows and the shelf side by side.
struct checking {
    struct shelving *shelving;
    size_t place, last; // buckets
    struct shelf_bucket *bucket;
    size_t cell;
    bool differs;
};

static void begin_check(struct checking *checking)
{
    checking->bucket = bucket_at(checking->shelving, checking->place);
    checking->cell = 0;
    checking->differs = !checking->bucket;
}

static void end_check(struct checking *checking)
{
    struct shelving *shelving = checking->shelving;
    if (!checking->differs && checking->cell == checking->bucket->count) {
        checking->bucket->state = shelving->state;
        shelving->freshness[checking->place] = FRESH;
    }
}

enum { PLACE_STARTED, PLACE_SERIES, PLACE_FIRST };

static enum status check_row(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct checking *checking = context;
    const int64_t started_ns = sqlite3_column_int64(row, PLACE_STARTED);
    struct cell_mark mark;
    while (checking->place < checking->last &&
           checking->shelving->starts[checking->place + 1] <= started_ns) {
        end_check(checking);
        checking->place++;
        begin_check(checking);
    }
    if (checking->differs)
        return STATUS_OK;
    const struct shelf_cell *cell =
        checking->cell < checking->bucket->count ? &checking->bucket->cells[checking->cell] : NULL;
    checking->differs = !cell || started_ns != checking->shelving->starts[checking->place] ||
                        sqlite3_column_int64(row, PLACE_SERIES) != cell->series ||
                        !cell_mark_read(&mark, row, PLACE_FIRST, PLACE_FIRST + 1) ||
                        !cell_mark_is(&mark, &cell->mark);
    checking->cell++;
    return STATUS_OK;
}

static enum status check_buckets(struct shelving *shelving, size_t first, size_t last,
                                 struct error *err)
{
    struct checking checking = {.shelving = shelving, .place = first, .last = last};
    begin_check(&checking);
    enum status status =
        scan_rows(shelving, "count, sketch", first, last, check_row, &checking, err);
    while (status == STATUS_OK) {
        end_check(&checking);
        if (checking.place == last)
            break;
        checking.place++;
        begin_check(&checking);
    }
    return status;
}

// ---- What is not there -------------------------------------------------------------------

// The bucket that is put together.
struct loading {
    struct shelving *shelving;
    size_t place, last;
    struct shelf_cell *cells;
    size_t count, room;
    uint32_t *words;
    size_t used, word_room;
    bool is_large;         // more than is kept
    struct sketch *sketch; // of the row at hand
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "store: out of memory");
}

static void end_load(struct loading *loading)
{
    struct shelving *shelving = loading->shelving;
    const uint32_t *words = loading->words;
    for (size_t i = 0; i < loading->count; i++) {
        struct shelf_cell *cell = &loading->cells[i];
        cell->counts = words;
        words += cell->packed.positive + cell->packed.negative;
    }
    const struct cell_key key = key_of(shelving, loading->place);
    if (loading->is_large)
        shelf_drop(shelving->shelf, &key);
    else
        shelf_put(shelving->shelf, &key,
                  &(struct shelf_bucket){shelving->state, loading->count, loading->cells});
    loading->count = 0;
    loading->used = 0;
    loading->is_large = false;
}

static enum status make_room(struct loading *loading, struct error *err)
{
    if (loading->count == loading->room) {
        const size_t room = loading->room ? 2 * loading->room : 32;
        struct shelf_cell *cells = realloc(loading->cells, room * sizeof *cells);
        if (!cells)
            return out_of_memory(err);
        loading->cells = cells;
        loading->room = room;
    }
    if (loading->word_room - loading->used < WORDS_OF_SKETCH) {
        const size_t room = 2 * loading->word_room + WORDS_OF_SKETCH;
        uint32_t *words = realloc(loading->words, room * sizeof *words);
        if (!words)
            return out_of_memory(err);
        loading->words = words;
        loading->word_room = room;
    }
    return STATUS_OK;
}

static enum status load_row(void *context, sqlite3_stmt *row, struct error *err)
{
    struct loading *loading = context;
    const struct shelving *shelving = loading->shelving;
    const int64_t started_ns = sqlite3_column_int64(row, PLACE_STARTED);
    while (loading->place < loading->last && shelving->starts[loading->place + 1] <= started_ns) {
        end_load(loading);
        loading->place++;
    }
    enum status status = make_room(loading, err);
    if (status != STATUS_OK)
        return status;
    struct shelf_cell *cell = &loading->cells[loading->count];
    struct cell_key key = shelving->key;
    key.started_ns = started_ns;
    key.series = sqlite3_column_int64(row, PLACE_SERIES);
    *cell = (struct shelf_cell){.series = key.series};
    sketch_reset(loading->sketch);
    cell->ratio.values.sketch = loading->sketch;
    status = cell_add(&cell->ratio, &key, row, PLACE_FIRST, err);
    cell->ratio.values.sketch = NULL;
    if (status != STATUS_OK)
        return status;
    if (started_ns != shelving->starts[loading->place])
        return error_set(err, STATUS_CORRUPT,
                         "store: a damaged rollup: it starts where no bucket does");
    (void)cell_mark_read(&cell->mark, row, PLACE_FIRST, PLACE_FIRST + CELL_COLUMN_COUNT - 1);
    if (!sketch_pack(loading->sketch, &cell->packed, loading->words + loading->used,
                     WORDS_OF_SKETCH) ||
        loading->count == CELLS_MAX || loading->used > WORDS_MAX) {
        loading->is_large = true;
        loading->count = 0;
        loading->used = 0;
        return STATUS_OK;
    }
    loading->used += cell->packed.positive + cell->packed.negative;
    loading->count++;
    return STATUS_OK;
}

static enum status load_buckets(struct shelving *shelving, size_t first, size_t last,
                                struct error *err)
{
    struct loading loading = {.shelving = shelving, .place = first, .last = last};
    if (sketch_new(&loading.sketch) != STATUS_OK)
        return out_of_memory(err);
    enum status status = scan_rows(shelving, CELL_COLUMNS, first, last, load_row, &loading, err);
    for (; status == STATUS_OK && loading.place <= last; loading.place++)
        end_load(&loading);
    sketch_free(loading.sketch);
    free(loading.cells);
    free(loading.words);
    return status;
}

// ---- All together --------------------------------------------------------------------------

typedef enum status buckets_do(struct shelving *shelving, size_t first, size_t last,
                               struct error *err);

// Does it with each run of buckets that are `worst` to `best`.
static enum status do_runs(struct shelving *shelving, enum freshness worst, enum freshness best,
                           buckets_do *work, struct error *err)
{
    enum status status = STATUS_OK;
    size_t first = 0;
    for (size_t i = 0; i <= shelving->count && status == STATUS_OK; i++) {
        if (i < shelving->count && shelving->freshness[i] >= worst &&
            shelving->freshness[i] <= best)
            continue;
        if (first < i)
            status = work(shelving, first, i - 1, err);
        first = i + 1;
    }
    return status;
}

static enum status hand_over(struct shelving *shelving, size_t place,
                             const struct shelf_reader *reader, struct error *err)
{
    const struct shelf_bucket *bucket = bucket_at(shelving, place);
    const int64_t start = shelving->starts[place];
    if (!bucket || bucket->state != shelving->state) {
        const struct rollup_span span = {start, rollup_next(shelving->key.level, start) - 1};
        return reader->scan(reader->context, &span, err);
    }
    enum status status = STATUS_OK;
    for (size_t i = 0; i < bucket->count && status == STATUS_OK; i++)
        status = reader->take(reader->context, start, &bucket->cells[i], err);
    return status;
}

enum status gather_shelved(struct gathering *gathering, const struct cell_key *key,
                           const struct rollup_span *span, const struct shelf_reader *reader,
                           struct error *err)
{
    struct shelving shelving = {
        .gathering = gathering, .shelf = gathering->store->shelf, .key = *key};
    enum status status = read_state(&shelving, err);
    if (status != STATUS_OK)
        return status;
    if (!list_buckets(&shelving, *span))
        return reader->scan(reader->context, span, err);
    status = do_runs(&shelving, STALE, STALE, check_buckets, err);
    if (status == STATUS_OK)
        status = do_runs(&shelving, MISSING, STALE, load_buckets, err);
    for (size_t i = 0; i < shelving.count && status == STATUS_OK; i++)
        status = hand_over(&shelving, i, reader, err);
    return status;
}
