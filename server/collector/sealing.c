#include "server/collector/sealing.h"

#include <stdlib.h>

#include "common/store/expire.h"
#include "common/store/seal_columns.h"
#include "common/store/sealer.h"
#include "common/sys/clock.h"

#define PASS_NS UINT64_C(60000000000) // from the end of a pass to the next
#define BUSY_NS UINT64_C(60000000000) // whoever waited may come again within

enum {
    BUSY_PAUSES = 3,               // so many times what a step took
    BUSY_ROWS = SEAL_ROWS_MAX / 2, // of a segment: storing it holds others up half as long
};

struct sealing {
    struct sqlite3 *db;
    int64_t after_ns;
    bool has_rollups;
    bool is_resting; // the last step ended a pass
    enum record_kind kind;
    struct sealer *sealers[RECORD_KIND_COUNT];
    uint64_t due_ns;
    uint64_t alone_ns; // from then on nobody else is expected
};

enum status sealing_new(struct sealing **out, struct sqlite3 *db, int64_t after_ns,
                        bool has_rollups, struct error *err)
{
    struct sealing *sealing = calloc(1, sizeof *sealing);
    if (!sealing)
        return error_no_memory(err, "sealing");
    sealing->db = db;
    sealing->after_ns = after_ns;
    sealing->has_rollups = has_rollups;
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++)
        if (seal_has_kind((enum record_kind)kind))
            status = sealer_new(&sealing->sealers[kind], db, (enum record_kind)kind, err);
    if (status != STATUS_OK) {
        sealing_free(sealing);
        return status;
    }
    *out = sealing;
    return STATUS_OK;
}

void sealing_free(struct sealing *sealing)
{
    if (!sealing)
        return;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        sealer_free(sealing->sealers[kind]);
    free(sealing);
}

uint64_t sealing_due_ns(const struct sealing *sealing)
{
    return sealing->after_ns == SEALING_NEVER ? UINT64_MAX : sealing->due_ns;
}

// On to the next kind that can be sealed; behind the last a pass ends.
static void next_kind(struct sealing *sealing)
{
    do
        sealing->kind = (enum record_kind)((sealing->kind + 1) % RECORD_KIND_COUNT);
    while (!sealing->sealers[sealing->kind] && sealing->kind != 0);
    sealing->is_resting = sealing->kind == 0;
}

enum status sealing_step(struct sealing *sealing, int64_t wall_ns, bool *changed, struct error *err)
{
    struct sealer_limits limits = {
        .before_ns = wall_ns > sealing->after_ns ? wall_ns - sealing->after_ns : INT64_MIN,
        .last_id = INT64_MAX,
        .rows = clock_monotonic_ns() < sealing->alone_ns ? BUSY_ROWS : SEAL_ROWS_MAX};
    bool done = false;
    uint32_t sealed = 0;
    enum status status = STATUS_OK;
    sealing->is_resting = false;
    *changed = false;
    if (!sealing->sealers[sealing->kind]) {
        next_kind(sealing);
        return STATUS_OK;
    }
    if (sealing->has_rollups)
        status = expire_last_id(sealing->db, sealing->kind, &limits.last_id, err);
    if (status == STATUS_OK)
        status = sealer_step(sealing->sealers[sealing->kind], &limits, &done, &sealed, err);
    *changed = sealed > 0;
    if (status != STATUS_OK || done)
        next_kind(sealing);
    return status;
}

void sealing_took(struct sealing *sealing, uint64_t began_ns, uint64_t ended_ns, bool is_busy)
{
    sealing->due_ns = ended_ns;
    if (is_busy)
        sealing->alone_ns = ended_ns + BUSY_NS;
    if (sealing->is_resting)
        sealing->due_ns += PASS_NS;
    else if (is_busy)
        sealing->due_ns += BUSY_PAUSES * (ended_ns - began_ns);
}

void sealing_again(struct sealing *sealing)
{
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        if (sealing->sealers[kind])
            sealer_restart(sealing->sealers[kind]);
}
