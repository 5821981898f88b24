#include "server/collector/maintenance/retention.h"

#include <stdlib.h>
#include <string.h>

#include "common/core/base/slice_size.h"
#include "common/store/retention/expire.h"
#include "common/store/retention/forget.h"
#include "common/store/schema/schema.h"
#include "common/store/sqlite/admin_log.h"
#include "common/sys/log.h"

#define HOUR_NS INT64_C(3600000000000)
#define PASS_NS UINT64_C(60000000000) // from the end of a pass to the next
#define OVER_NS UINT64_C(1000000000)  // the same while the store exceeds its limit of bytes
// Runs that never stored a record go after an hour; while the store exceeds its limit, all runs
// without records after ten minutes.
#define EMPTY_AGE_NS HOUR_NS
#define OVER_AGE_NS  INT64_C(600000000000)

enum {
    SLICE_NS = 15000000, // target duration of a slice with its commit
    BUSY_PAUSES = 3,     // pause after a slice, as a multiple of its duration
    WAITS_MAX = 5,       // passes that await sums before the store shrinks without them
    SLACK_SHARE = 32,    // 1/32 of the file may be free pages
    ROWS_MIN = 256,      // costs no more than a commit on a slow disk
    ROWS_FIRST = 512,
    ROWS_MAX = 8192,
    RUNS_MIN = 1,
    RUNS_FIRST = 64,
    RUNS_MAX = 256,
    TOMBSTONE_BYTES = 64,  // with its index
    TOMBSTONES_SHARE = 16, // of the limit of bytes
    PAGES_MIN = 32,
    PAGES_FIRST = 64,
    PAGES_MAX = 1024,
};

// What a slice has: rows of a table, or free pages.
enum slice_kind { SLICE_RECORDS, SLICE_ROLLUPS, SLICE_RUNS, SLICE_PAGES, SLICE_KINDS };

enum { PLACES = ROLLUP_GROUPING_COUNT * ROLLUP_LEVEL_COUNT };

enum phase { PHASE_ROWS, PHASE_LEVELS, PHASE_RUNS, PHASE_BYTES, PHASE_ROOM, PHASE_COUNT };

struct retention {
    struct sqlite3 *db;
    struct retention_rules rules;
    bool has_rollups;
    enum phase phase;
    unsigned kind;  // of rows
    unsigned place; // grouping and level of rollups
    bool sweeping;  // deleting rollups of a level before a time, to shrink
    enum rollup_level sweep_level;
    int64_t sweep_before_ns;
    struct forget forget; // runs that go
    bool forgetting;      // `forget` is set
    bool removed_runs;    // since retention_removed_runs
    struct slice_size sizes[SLICE_KINDS];
    uint64_t gone[SLICE_KINDS]; // deleted in this pass
    enum slice_kind used;       // by the last slice; SLICE_KINDS: none
    bool ended_early;           // it deleted fewer rows than its size allows
    uint64_t due_ns;
    bool resting;    // the last step ended a pass
    bool wants_sums; // the last step requested sums of days
    bool asked_sums; // a step did; the pass after they are built may expire more
    bool is_retry;   // this is that pass
    unsigned waits;  // passes in a row that did not shrink the store, to await sums
    bool is_over;    // the store exceeds its limit of bytes
    bool over_bytes; // and that was logged
};

enum status retention_new(struct retention **out, struct sqlite3 *db,
                          const struct retention_rules *rules, bool has_rollups, struct error *err)
{
    struct retention *retention = calloc(1, sizeof *retention);
    if (!retention)
        return error_no_memory(err, "retention");
    retention->db = db;
    retention->rules = *rules;
    retention->has_rollups = has_rollups;
    const struct slice_size rows = {ROWS_FIRST, ROWS_MIN, ROWS_MAX};
    retention->sizes[SLICE_RECORDS] = retention->sizes[SLICE_ROLLUPS] = rows;
    retention->sizes[SLICE_RUNS] = (struct slice_size){RUNS_FIRST, RUNS_MIN, RUNS_MAX};
    retention->sizes[SLICE_PAGES] = (struct slice_size){PAGES_FIRST, PAGES_MIN, PAGES_MAX};
    *out = retention;
    return STATUS_OK;
}

void retention_free(struct retention *retention)
{
    free(retention);
}

uint64_t retention_due_ns(const struct retention *retention)
{
    return retention->due_ns;
}

static void next_phase(struct retention *retention)
{
    retention->kind = 0;
    retention->place = 0;
    retention->sweeping = false;
    retention->forgetting = false;
    retention->phase = (enum phase)((retention->phase + 1) % PHASE_COUNT);
    retention->resting = retention->phase == PHASE_ROWS;
}

// The time before which rows expire, rounded down to a bucket of the level; INT64_MIN: never.
static int64_t floor_of(int64_t wall_ns, int64_t age_ns, enum rollup_level level)
{
    if (age_ns <= 0 || age_ns == RETENTION_FOREVER || wall_ns < INT64_MIN + age_ns)
        return INT64_MIN;
    return rollup_bucket(level, wall_ns - age_ns);
}

// ---- Records by age -------------------------------------------------------------------

static enum status expire_some(struct retention *retention, enum record_kind kind,
                               int64_t before_ns, unsigned *gone, struct error *err)
{
    struct expire_rows rows = {.kind = kind,
                               .before_ns = before_ns,
                               .last_id = INT64_MAX,
                               .count = retention->sizes[SLICE_RECORDS].now};
    enum status status = STATUS_OK;
    if (retention->has_rollups)
        status = expire_last_id(retention->db, kind, &rows.last_id, err);
    bool wants_sums = false;
    if (status == STATUS_OK && retention->has_rollups && rollup_has_kind(kind))
        status = expire_want_sums(retention->db, kind, &rows.before_ns, &wants_sums, err);
    retention->wants_sums |= wants_sums;
    if (status == STATUS_OK)
        status = expire_slice(retention->db, &rows, gone, err);
    retention->used = SLICE_RECORDS;
    return status;
}

// A stage gets its model from its load, which therefore stays an hour longer.
static int64_t rows_floor(const struct retention *retention, enum record_kind kind, int64_t wall_ns)
{
    const int64_t age_ns = retention_rules_age(&retention->rules, kind);
    const int64_t floor_ns = floor_of(wall_ns, age_ns, ROLLUP_MINUTE);
    const bool has_stages = kind == RECORD_KIND_LOAD || kind == RECORD_KIND_STARTUP;
    return has_stages && floor_ns > INT64_MIN + HOUR_NS ? floor_ns - HOUR_NS : floor_ns;
}

static enum status step_rows(struct retention *retention, int64_t wall_ns, unsigned *gone,
                             struct error *err)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && *gone == 0 && retention->kind < RECORD_KIND_COUNT) {
        const enum record_kind kind = (enum record_kind)retention->kind;
        const int64_t floor_ns = rows_floor(retention, kind, wall_ns);
        if (expire_has_kind(kind) && floor_ns != INT64_MIN)
            status = expire_some(retention, kind, floor_ns, gone, err);
        if (*gone == 0)
            retention->kind++;
    }
    if (status == STATUS_OK && *gone == 0)
        next_phase(retention);
    return status;
}

// ---- Rollups by age -------------------------------------------------------------------

// The time before which rollups are deleted, by age or to shrink the store.
static int64_t level_floor(const struct retention *retention, const struct expire_level *rollups,
                           int64_t wall_ns)
{
    if (retention->phase == PHASE_BYTES)
        return rollups->level == retention->sweep_level ? retention->sweep_before_ns : INT64_MIN;
    const bool is_finest = rollups->grouping == ROLLUP_FULL;
    const int64_t *ages = is_finest ? retention->rules.finest_ns : retention->rules.level_ns;
    const enum rollup_level coarser =
        rollups->level == ROLLUP_MONTH ? ROLLUP_MONTH : (enum rollup_level)(rollups->level + 1);
    return floor_of(wall_ns, ages[rollups->level], coarser);
}

// Deletes a slice of the next level that has rows to delete.  Sets `*done` when none is left.
static enum status sweep_levels(struct retention *retention, int64_t wall_ns, unsigned *gone,
                                bool *done, struct error *err)
{
    enum status status = STATUS_OK;
    retention->used = SLICE_ROLLUPS;
    while (status == STATUS_OK && *gone == 0 && retention->place < PLACES) {
        struct expire_level rollups = {
            .grouping = (enum rollup_grouping)(retention->place / ROLLUP_LEVEL_COUNT),
            .level = (enum rollup_level)(retention->place % ROLLUP_LEVEL_COUNT),
            .count = retention->sizes[SLICE_ROLLUPS].now};
        rollups.before_ns = level_floor(retention, &rollups, wall_ns);
        if (rollups.before_ns > INT64_MIN)
            status = expire_level_slice(retention->db, &rollups, gone, err);
        if (*gone == 0)
            retention->place++;
    }
    *done = retention->place == PLACES;
    return status;
}

static enum status step_levels(struct retention *retention, int64_t wall_ns, unsigned *gone,
                               struct error *err)
{
    bool done = false;
    enum status status = sweep_levels(retention, wall_ns, gone, &done, err);
    if (status == STATUS_OK && done)
        next_phase(retention);
    return status;
}

// ---- Runs -----------------------------------------------------------------------------

static enum status look_at_bytes(struct retention *retention, uint64_t *over, struct error *err)
{
    struct expire_room room = {0};
    if (retention->rules.bytes == 0)
        return STATUS_OK;
    enum status status = expire_room(retention->db, &room, err);
    const int64_t used = room.bytes - room.free;
    *over = used > retention->rules.bytes ? (uint64_t)(used - retention->rules.bytes) : 0;
    retention->is_over = *over > 0;
    return status;
}

enum status retention_excess(struct retention *retention, uint64_t *over, struct error *err)
{
    const bool was_over = retention->is_over;
    *over = 0;
    enum status status = look_at_bytes(retention, over, err);
    if (status == STATUS_OK && retention->is_over && !was_over && retention->phase == PHASE_ROWS)
        retention->due_ns = 0; // the next pass begins now
    return status;
}

// Sets which runs without records go in this pass.
static void begin_runs(struct retention *retention, int64_t wall_ns)
{
    const int64_t over_ns = retention->is_over ? wall_ns - OVER_AGE_NS : INT64_MIN;
    const int64_t raw_ns = floor_of(wall_ns, retention->rules.raw_ns, ROLLUP_MINUTE);
    const int64_t tombstones = retention->rules.bytes / TOMBSTONES_SHARE / TOMBSTONE_BYTES;
    const bool is_few = retention->rules.bytes > 0 && tombstones < FORGET_TOMBSTONES;
    retention->forgetting = true;
    retention->forget = (struct forget){.why = retention->is_over ? FORGET_BYTES : FORGET_RETENTION,
                                        .before_ns = raw_ns > over_ns ? raw_ns : over_ns,
                                        .before_empty_ns = wall_ns - EMPTY_AGE_NS,
                                        .tombstones = is_few ? tombstones : FORGET_TOMBSTONES};
}

static enum status step_runs(struct retention *retention, int64_t wall_ns, unsigned *gone,
                             struct error *err)
{
    bool done = false;
    uint64_t over;
    enum status status = retention->forgetting ? STATUS_OK : look_at_bytes(retention, &over, err);
    if (status != STATUS_OK)
        return status;
    if (!retention->forgetting)
        begin_runs(retention, wall_ns);
    retention->used = SLICE_RUNS;
    status = forget_slice(&retention->forget, retention->db, retention->sizes[SLICE_RUNS].now, gone,
                          &done, err);
    retention->removed_runs |= *gone > 0;
    if (status == STATUS_OK && done)
        next_phase(retention);
    return status;
}

bool retention_removed_runs(struct retention *retention)
{
    const bool removed = retention->removed_runs;
    retention->removed_runs = false;
    return removed;
}

// ---- Bytes ----------------------------------------------------------------------------

// Deletes records of a time that is implausibly late.  They count as the oldest.
static enum status shrink_ahead(struct retention *retention, int64_t wall_ns, unsigned *gone,
                                struct error *err)
{
    struct expire_rows rows = {.is_ahead = true,
                               .before_ns = wall_ns + SCHEMA_CLOCK_AHEAD_NS,
                               .last_id = INT64_MAX,
                               .count = retention->sizes[SLICE_RECORDS].now};
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK && *gone == 0; kind++) {
        rows.kind = (enum record_kind)kind;
        if (!expire_has_kind(rows.kind))
            continue;
        if (retention->has_rollups)
            status = expire_last_id(retention->db, rows.kind, &rows.last_id, err);
        if (status == STATUS_OK)
            status = expire_slice(retention->db, &rows, gone, err);
    }
    retention->used = SLICE_RECORDS;
    return status;
}

// Deletes of the oldest day of records that may be deleted, never of the current minute.  Those of
// implausibly early times are spread over centuries: they go together.
static enum status shrink_rows(struct retention *retention, int64_t wall_ns, unsigned *gone,
                               struct error *err)
{
    enum record_kind kind = RECORD_KIND_RUN;
    int64_t oldest_ns = 0;
    const int64_t now_ns = rollup_bucket(ROLLUP_MINUTE, wall_ns);
    enum status status =
        expire_oldest(retention->db, !retention->has_rollups, &kind, &oldest_ns, err);
    if (status != STATUS_OK)
        return status == STATUS_NO_DATA ? STATUS_OK : status;
    const int64_t next_ns = oldest_ns < SCHEMA_CLOCK_FLOOR_NS
                                ? SCHEMA_CLOCK_FLOOR_NS
                                : rollup_next(ROLLUP_DAY, rollup_bucket(ROLLUP_DAY, oldest_ns));
    if (oldest_ns < now_ns)
        status = expire_some(retention, kind, next_ns < now_ns ? next_ns : now_ns, gone, err);
    return status;
}

// Chooses the oldest buckets of the finest existing level: a day of minutes, or a month of
// hours or days.  The following steps delete them for all metrics.
static enum status begin_sweep(struct retention *retention, int64_t wall_ns, struct error *err)
{
    for (unsigned level = ROLLUP_MINUTE; level < ROLLUP_MONTH; level++) {
        int64_t oldest_ns = 0;
        const enum rollup_level span = level == ROLLUP_MINUTE ? ROLLUP_DAY : ROLLUP_MONTH;
        enum status status =
            expire_oldest_level(retention->db, (enum rollup_level)level, &oldest_ns, err);
        if (status == STATUS_NO_DATA)
            continue;
        if (status != STATUS_OK)
            return status;
        const int64_t before_ns = rollup_next(span, rollup_bucket(span, oldest_ns));
        if (before_ns > wall_ns)
            continue;
        retention->sweep_level = (enum rollup_level)level;
        retention->sweep_before_ns = before_ns;
        retention->sweeping = true;
        retention->place = 0;
        return STATUS_OK;
    }
    return STATUS_OK;
}

// When nothing is deleted, no sweep begins and no sums are requested, nothing can be deleted.
static enum status shrink(struct retention *retention, int64_t wall_ns, unsigned *gone,
                          struct error *err)
{
    enum status status = shrink_ahead(retention, wall_ns, gone, err);
    if (status == STATUS_OK && *gone == 0)
        status = shrink_rows(retention, wall_ns, gone, err);
    const bool is_done = status != STATUS_OK || *gone > 0 || retention->wants_sums;
    return is_done ? status : begin_sweep(retention, wall_ns, err);
}

static enum status sweep(struct retention *retention, int64_t wall_ns, unsigned *gone,
                         struct error *err)
{
    bool done = false;
    enum status status = sweep_levels(retention, wall_ns, gone, &done, err);
    retention->sweeping = !done;
    return status;
}

static enum status step_bytes(struct retention *retention, int64_t wall_ns, unsigned *gone,
                              struct error *err)
{
    bool awaits_sums = false;
    uint64_t over;
    if (retention->sweeping)
        return sweep(retention, wall_ns, gone, err);
    enum status status = look_at_bytes(retention, &over, err);
    if (retention->rules.bytes > 0 && status == STATUS_OK)
        status = expire_awaits_sums(retention->db, &awaits_sums, err);
    if (!awaits_sums)
        retention->waits = 0;
    const bool is_over = retention->is_over;
    // Anything else is newer than the records that await their sums, or cannot be built again.
    if (status == STATUS_OK && is_over && awaits_sums && retention->waits++ < WAITS_MAX) {
        next_phase(retention);
        return STATUS_OK;
    }
    if (status == STATUS_OK && is_over)
        status = shrink(retention, wall_ns, gone, err);
    if (status != STATUS_OK || *gone > 0 || retention->sweeping)
        return status;
    next_phase(retention);
    if (retention->wants_sums)
        return STATUS_OK;
    if (is_over && !retention->over_bytes)
        log_write(
            LOG_LEVEL_WARNING,
            "the store is larger than --retention bytes, and nothing in it can be deleted yet");
    retention->over_bytes = is_over;
    return STATUS_OK;
}

// ---- Room -----------------------------------------------------------------------------

static bool is_too_free(const struct retention *retention, const struct expire_room *room)
{
    if (room->free > room->bytes / SLACK_SHARE)
        return true;
    return room->free > 0 && retention->rules.bytes > 0 && room->bytes > retention->rules.bytes;
}

static enum status step_room(struct retention *retention, int64_t wall_ns, unsigned *gone,
                             struct error *err)
{
    struct expire_room before = {0}, after = {0};
    (void)wall_ns;
    enum status status = expire_room(retention->db, &before, err);
    const bool wanted = status == STATUS_OK && is_too_free(retention, &before);
    if (wanted)
        status = expire_give_back(retention->db, retention->sizes[SLICE_PAGES].now, err);
    if (wanted && status == STATUS_OK)
        status = expire_room(retention->db, &after, err);
    if (status != STATUS_OK)
        return status;
    *gone = wanted ? retention->sizes[SLICE_PAGES].now : 0;
    retention->used = SLICE_PAGES;
    if (!wanted || after.bytes >= before.bytes)
        next_phase(retention);
    return STATUS_OK;
}

// ---- Steps ----------------------------------------------------------------------------

static void note_gone(struct retention *retention)
{
    static const char *const what[] = {"records", "rollups", "runs"};
    for (unsigned i = 0; i < sizeof what / sizeof *what; i++)
        if (retention->gone[i] > 0)
            admin_log_retention(retention->db, what[i], (int64_t)retention->gone[i]);
    memset(retention->gone, 0, sizeof retention->gone);
}

static enum status (*const steps[PHASE_COUNT])(struct retention *retention, int64_t wall_ns,
                                               unsigned *gone, struct error *err) = {
    [PHASE_ROWS] = step_rows,   [PHASE_LEVELS] = step_levels, [PHASE_RUNS] = step_runs,
    [PHASE_BYTES] = step_bytes, [PHASE_ROOM] = step_room,
};

enum status retention_step(struct retention *retention, int64_t wall_ns, bool *changed,
                           struct error *err)
{
    unsigned gone = 0;
    retention->wants_sums = false;
    retention->used = SLICE_KINDS;
    retention->resting = false;
    enum status status = steps[retention->phase](retention, wall_ns, &gone, err);
    *changed = gone > 0 || retention->wants_sums;
    retention->ended_early = true;
    if (retention->used != SLICE_KINDS) {
        retention->gone[retention->used] += gone;
        retention->ended_early = gone < retention->sizes[retention->used].now;
    }
    // A retry where nothing expires does not ask for another: these sums cannot be built.
    retention->is_retry = retention->is_retry && gone == 0;
    retention->asked_sums |= retention->wants_sums && !retention->is_retry;
    if (status != STATUS_OK) {
        retention->phase = PHASE_ROOM;
        next_phase(retention);
    }
    if (retention->resting)
        note_gone(retention);
    return status;
}

void retention_record_time(struct retention *retention, uint64_t began_ns, uint64_t ended_ns,
                           bool is_busy)
{
    const uint64_t took_ns = ended_ns - began_ns;
    // A slice that ended early can show that its size is too large, not that it is too small.
    if (retention->used != SLICE_KINDS && (!retention->ended_early || took_ns > SLICE_NS))
        slice_size_adapt(&retention->sizes[retention->used], took_ns, SLICE_NS);
    retention->due_ns = ended_ns;
    if (retention->resting) {
        retention->due_ns += retention->is_over && retention->waits == 0 ? OVER_NS : PASS_NS;
        retention->is_retry = false;
    } else if (is_busy && !retention->is_over)
        retention->due_ns += BUSY_PAUSES * took_ns;
}

void retention_sums_built(struct retention *retention)
{
    if (!retention->asked_sums)
        return;
    retention->asked_sums = false;
    retention->is_retry = true;
    retention->phase = PHASE_ROOM;
    next_phase(retention);
    retention->due_ns = 0;
}
