#include "server/collector/writer/writer_import.h"

#include <stdlib.h>

#include "common/store/transfer/import.h"
#include "common/store/rollup/rollup.h"
#include "common/sys/log.h"
#include "server/collector/threads/import_request.h"
#include "server/collector/rollup/rollups.h"

struct writer_import {
    struct writer_import_parts parts;
    struct import_target *target;
};

static enum status create(struct writer_import **out, const struct writer_import_parts *parts,
                          struct error *err)
{
    struct writer_import *import = calloc(1, sizeof *import);
    if (!import)
        return error_no_memory(err, "writer");
    import->parts = *parts;
    enum status status = import_target_new(&import->target, parts->db, err);
    if (status != STATUS_OK) {
        writer_import_free(import);
        return status;
    }
    *out = import;
    return STATUS_OK;
}

void writer_import_free(struct writer_import *import)
{
    if (!import)
        return;
    import_target_free(import->target);
    free(import);
}

// Import and inserter both assign ids: each continues after the other's last.
static void sync_ids(struct writer_import *import, enum record_kind kind)
{
    if (kind != RECORD_KIND_RUN)
        import_target_set_last(import->target, kind,
                               inserter_last_id(import->parts.inserter, kind));
}

static void notify(struct writer_import *import, const struct import_batch *batch)
{
    struct error err;
    enum status status = runs_refresh_ids(import->parts.runs, &err);
    if (status == STATUS_OK)
        status = inserter_reset(import->parts.inserter, &err);
    if (status != STATUS_OK)
        log_write(LOG_LEVEL_WARNING, "%s", err.text);
    if (import->parts.rollups && !batch->has_runs && !batch->baseline &&
        rollup_has_kind(batch->kind))
        rollups_rows_added(import->parts.rollups, batch->kind);
}

static enum status apply(struct writer_import *import, struct import_batch *batch,
                         struct error *err)
{
    sync_ids(import, batch->kind);
    enum status status = import_apply(import->target, batch, err);
    if (status == STATUS_OK)
        notify(import, batch);
    return status;
}

void writer_import_apply(struct writer_import **import, const struct writer_import_parts *parts,
                         struct import_request *request)
{
    struct error err = {.text = "writer: failed"};
    enum status status = *import ? STATUS_OK : create(import, parts, &err);
    if (status == STATUS_OK)
        status = apply(*import, import_request_batch(request), &err);
    import_request_done(request, status, &err);
}
