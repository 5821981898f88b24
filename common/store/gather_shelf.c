// Rollups by way of the store's shelf (shelf.h).
//
// A bucket on the shelf is used as it is where the store is still in the state it was last
// seen in ("PRAGMA data_version", read in the query's transaction: it changes with every
// commit of others).  Where it is not, the marks of the bucket's rows are read, and compared
// with those on the shelf; only what differs is read and taken apart.
//
// A piece that is asked for again is summed, too, each series for itself, and the sum is used
// while none of its buckets has been read anew since.  Sums of integers, counts, extremes and
// sketches are the same in any order; those of reals are not, to the last bit, so that they
// are added up each time in the order in which whoever has no shelf does.
#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/cell.h"
#include "common/store/gather_parts.h"

// Of longer pieces, such as a step's of a day in minutes, each bucket is read once at most.
enum { BUCKETS_MAX = 256 };

// What a bucket may have to be kept: cells, and words of their counts.
enum { CELLS_MAX = 4096, WORDS_MAX = 1 << 19, WORDS_OF_SKETCH = 4096 };

enum freshness { MISSING, STALE, FRESH };

// Of shorter pieces adding up is as quick as finding the sum.
enum { BUCKETS_SUMMED = 4 };

// A piece at work.
struct shelving {
    struct gathering *gathering;
    struct shelf *shelf;
    struct cell_key key; // the series, and the start where none is given, are not looked at
    struct rollup_span span;
    uint64_t state;
    size_t count;
    int64_t starts[BUCKETS_MAX];
    enum freshness freshness[BUCKETS_MAX];
};

static struct shelf_key key_from_to(const struct shelving *shelving, int64_t first_ns,
                                    int64_t last_ns)
{
    return (struct shelf_key){.metric = shelving->key.metric,
                              .grouping = shelving->key.grouping,
                              .level = shelving->key.level,
                              .first_ns = first_ns,
                              .last_ns = last_ns};
}

static struct shelf_key key_of(const struct shelving *shelving, size_t place)
{
    return key_from_to(shelving, shelving->starts[place], shelving->starts[place]);
}

static struct shelf_bucket *bucket_at(const struct shelving *shelving, size_t place)
{
    const struct shelf_key key = key_of(shelving, place);
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
static bool list_buckets(struct shelving *shelving)
{
    const struct rollup_span span = shelving->span;
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

// A bucket, or a sum, that is put together.
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

// The words stay where they are from now on.
static void point_to_counts(struct loading *loading)
{
    const uint32_t *words = loading->words;
    for (size_t i = 0; i < loading->count; i++) {
        struct shelf_cell *cell = &loading->cells[i];
        cell->counts = words;
        words += cell->packed.positive + cell->packed.negative;
    }
}

static void end_loading(struct loading *loading)
{
    sketch_free(loading->sketch);
    free(loading->cells);
    free(loading->words);
}

static void end_load(struct loading *loading)
{
    struct shelving *shelving = loading->shelving;
    point_to_counts(loading);
    const struct shelf_key key = key_of(shelving, loading->place);
    const struct shelf_bucket bucket = {
        .state = shelving->state, .count = loading->count, .cells = loading->cells};
    if (loading->is_large)
        shelf_drop(shelving->shelf, &key);
    else
        shelf_put(shelving->shelf, &key, &bucket);
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
    *cell = (struct shelf_cell){.series = key.series, .last_ns = started_ns, .rollups = 1};
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
    end_loading(&loading);
    return status;
}

// ---- Sums ----------------------------------------------------------------------------------

// A piece goes over the steps of a question that has some.
static bool can_sum(const struct shelving *shelving)
{
    return shelving->count >= BUCKETS_SUMMED && shelving->gathering->of->query->step_ns == 0;
}

static struct shelf_key key_of_sum(const struct shelving *shelving)
{
    return key_from_to(shelving, shelving->span.first_ns, shelving->span.last_ns);
}

static struct shelf_bucket *sum_at(const struct shelving *shelving)
{
    const struct shelf_key key = key_of_sum(shelving);
    return shelf_find(shelving->shelf, &key);
}

static bool has_cells(const struct shelf_bucket *sum)
{
    return !sum->is_asked && !sum->is_vain;
}

// Whether all buckets of the piece are as the store has them, and were when `sum` was made
// (NULL: at any time).
static bool are_all_there(const struct shelving *shelving, const struct shelf_bucket *sum)
{
    for (size_t i = 0; i < shelving->count; i++) {
        const struct shelf_bucket *bucket = bucket_at(shelving, i);
        if (!bucket || bucket->state != shelving->state || (sum && bucket->made > sum->made))
            return false;
    }
    return true;
}

static int by_series(const void *left, const void *right)
{
    const struct shelf_cell *a = *(const struct shelf_cell *const *)left;
    const struct shelf_cell *b = *(const struct shelf_cell *const *)right;
    return (a->series > b->series) - (a->series < b->series);
}

// All cells of the piece, rising by series, the caller's; NULL where there is no memory.
static const struct shelf_cell **list_cells(const struct shelving *shelving, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < shelving->count; i++)
        *count += bucket_at(shelving, i)->count;
    const struct shelf_cell **cells = calloc(*count ? *count : 1, sizeof *cells);
    size_t used = 0;
    for (size_t i = 0; i < shelving->count && cells; i++) {
        const struct shelf_bucket *bucket = bucket_at(shelving, i);
        for (size_t c = 0; c < bucket->count; c++)
            cells[used++] = &bucket->cells[c];
    }
    if (cells)
        qsort(cells, *count, sizeof *cells, by_series);
    return cells;
}

static bool can_add(const struct shelf_cell *sum, const struct shelf_cell *cell)
{
    return !cell->ratio.values.has_reals && sum->rollups < UINT32_MAX - cell->rollups &&
           cell->ratio.values.count <= (uint64_t)INT64_MAX - sum->ratio.values.count;
}

// Sums the cells of one series from the first of them on, in the room made for it; the cell
// behind them, or NULL where they cannot be summed.
static const struct shelf_cell *const *sum_series(struct loading *sums,
                                                  const struct shelf_cell *const *first,
                                                  const struct shelf_cell *const *end)
{
    struct shelf_cell *sum = &sums->cells[sums->count];
    *sum = (struct shelf_cell){.series = (*first)->series, .last_ns = INT64_MIN};
    sketch_reset(sums->sketch);
    for (; first < end && (*first)->series == sum->series; first++) {
        if (!can_add(sum, *first))
            return NULL;
        ratio_merge(&sum->ratio, &(*first)->ratio);
        sketch_add_packed(sums->sketch, &(*first)->packed, (*first)->counts);
        sum->last_ns = (*first)->last_ns > sum->last_ns ? (*first)->last_ns : sum->last_ns;
        sum->rollups += (*first)->rollups;
    }
    if (!sketch_pack(sums->sketch, &sum->packed, sums->words + sums->used, WORDS_OF_SKETCH) ||
        sums->count == CELLS_MAX || sums->used > WORDS_MAX)
        return NULL;
    sums->used += sum->packed.positive + sum->packed.negative;
    sums->count++;
    return first;
}

// Puts the sum of all buckets of the piece on the shelf, or that it cannot be made.
static enum status make_sum(struct shelving *shelving, struct error *err)
{
    struct loading sums = {.shelving = shelving};
    size_t count = 0;
    const struct shelf_cell **cells = list_cells(shelving, &count);
    enum status status = cells ? STATUS_OK : out_of_memory(err);
    if (status == STATUS_OK && sketch_new(&sums.sketch) != STATUS_OK)
        status = out_of_memory(err);
    const struct shelf_cell *const *at = cells;
    const struct shelf_cell *const *end = cells ? cells + count : NULL;
    while (status == STATUS_OK && at && at < end) {
        status = make_room(&sums, err);
        if (status == STATUS_OK)
            at = sum_series(&sums, at, end);
    }
    if (status == STATUS_OK) {
        point_to_counts(&sums);
        const struct shelf_key key = key_of_sum(shelving);
        const struct shelf_bucket sum = {
            .state = shelving->state, .count = sums.count, .cells = sums.cells};
        shelf_put(shelving->shelf, &key, at ? &sum : &(struct shelf_bucket){.is_vain = true});
    }
    free(cells);
    end_loading(&sums);
    return status;
}

// The sum of the piece, whose buckets have been read; NULL where there is none yet: the first
// question only leaves word that there was one.
static enum status find_or_make_sum(struct shelving *shelving, const struct shelf_bucket **out,
                                    struct error *err)
{
    struct shelf_bucket *sum = sum_at(shelving);
    if (sum && sum->is_vain)
        return STATUS_OK;
    if (!sum || (!sum->is_asked && !are_all_there(shelving, sum))) {
        const struct shelf_key key = key_of_sum(shelving);
        shelf_put(shelving->shelf, &key, &(struct shelf_bucket){.is_asked = true});
        return STATUS_OK;
    }
    enum status status = STATUS_OK;
    if (sum->is_asked && are_all_there(shelving, NULL))
        status = make_sum(shelving, err);
    sum = status == STATUS_OK ? sum_at(shelving) : NULL;
    if (sum && has_cells(sum)) {
        sum->state = shelving->state;
        *out = sum;
    }
    return status;
}

static enum status hand_over_cells(const struct shelf_bucket *bucket,
                                   const struct shelf_reader *reader, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < bucket->count && status == STATUS_OK; i++)
        status = reader->take(reader->context, &bucket->cells[i], err);
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
    return hand_over_cells(bucket, reader, err);
}

static enum status gather_buckets(struct shelving *shelving, const struct shelf_reader *reader,
                                  struct error *err)
{
    enum status status = do_runs(shelving, STALE, STALE, check_buckets, err);
    if (status == STATUS_OK)
        status = do_runs(shelving, MISSING, STALE, load_buckets, err);
    const struct shelf_bucket *sum = NULL;
    if (status == STATUS_OK && can_sum(shelving))
        status = find_or_make_sum(shelving, &sum, err);
    if (status == STATUS_OK && sum)
        return hand_over_cells(sum, reader, err);
    for (size_t i = 0; i < shelving->count && status == STATUS_OK; i++)
        status = hand_over(shelving, i, reader, err);
    return status;
}

enum status gather_shelved(struct gathering *gathering, const struct cell_key *key,
                           const struct rollup_span *span, const struct shelf_reader *reader,
                           struct error *err)
{
    struct shelving shelving = {
        .gathering = gathering, .shelf = gathering->store->shelf, .key = *key, .span = *span};
    enum status status = read_state(&shelving, err);
    if (status != STATUS_OK)
        return status;
    const struct shelf_bucket *sum = sum_at(&shelving);
    if (sum && has_cells(sum) && sum->state == shelving.state && gathering->of->query->step_ns == 0)
        return hand_over_cells(sum, reader, err);
    if (!list_buckets(&shelving))
        return reader->scan(reader->context, span, err);
    return gather_buckets(&shelving, reader, err);
}
