#include "server/collector/writer/writer_import.h"

#include "common/store/transfer/import.h"
#include "common/store/rollup/rollup.h"
#include "common/sys/log.h"
#include "server/collector/threads/import_request.h"
#include "server/collector/rollup/rollups.h"

static void notify(const struct writer_import_parts *parts, const struct import_batch *batch)
{
    struct error err;
    enum status status = runs_refresh_ids(parts->runs, &err);
    if (status == STATUS_OK)
        status = inserter_reset(parts->inserter, &err);
    if (status != STATUS_OK)
        log_write(LOG_LEVEL_WARNING, "%s", err.text);
    if (parts->rollups && rollup_has_kind(batch->kind))
        rollups_rows_added(parts->rollups, batch->kind);
}

// Import and inserter both assign ids: each continues after the other's last.
void writer_import_apply(const struct writer_import_parts *parts, struct import_request *request)
{
    struct error err = {.text = "writer: failed"};
    struct import_batch *batch = import_request_batch(request);
    enum status status =
        import_apply(parts->db, batch, inserter_last_id(parts->inserter, batch->kind), &err);
    if (status == STATUS_OK)
        notify(parts, batch);
    import_request_done(request, status, &err);
}
