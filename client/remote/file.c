// A store file as a source.
#include <stdlib.h>
#include <string.h>

#include "client/remote/source.h"
#include "common/store/compare/baseline.h"
#include "common/store/transfer/import.h"
#include "common/store/store.h"
#include "common/store/retention/clear.h"

struct file {
    struct store *store;
    char *path;
};

static void file_close(void *source)
{
    struct file *file = source;
    if (!file)
        return;
    store_close(file->store);
    free(file->path);
    free(file);
}

static enum status file_open(void **source, const struct remote_target *target, struct error *err)
{
    struct file *file = calloc(1, sizeof *file);
    if (file)
        file->path = strdup(target->db);
    if (!file || !file->path) {
        file_close(file);
        return error_no_memory(err, "remote");
    }
    enum status status = store_open(&file->store, file->path, err);
    if (status != STATUS_OK) {
        file_close(file);
        return status;
    }
    *source = file;
    return STATUS_OK;
}

static const char *file_name(const void *source)
{
    const struct file *file = source;
    return file->path;
}

static const char *file_warning(const void *source)
{
    const struct file *file = source;
    return store_warning(file->store);
}

static enum status file_clear(const struct file *file, const struct query *query,
                              struct result **out, struct error *err)
{
    uint64_t cleared;
    enum status status = store_clear(file->path, &query->filter, &cleared, err);
    if (status != STATUS_OK)
        return status;
    struct result *result = NULL;
    status = result_new(&result);
    if (status == STATUS_OK)
        status = result_add_column(result, "cleared", UNIT_COUNT);
    if (status == STATUS_OK)
        status = result_add_row(result);
    if (status != STATUS_OK) {
        result_free(result);
        return error_no_memory(err, "remote");
    }
    result_set_int(result, 0, (int64_t)cleared);
    *out = result;
    return STATUS_OK;
}

static enum status file_query(void *source, const struct query *query, struct result **out,
                              struct error *err)
{
    struct file *file = source;
    if (query->kind == QUERY_CLEAR)
        return file_clear(file, query, out, err);
    if (query->kind == QUERY_IMPORT)
        return store_import(file->path, query->file.path, out, err);
    if (query->kind == QUERY_BASELINE_SAVE || query->kind == QUERY_BASELINE_DELETE)
        return baseline_write_file(file->path, query, out, err);
    return store_query(file->store, query, out, err);
}

const struct source_ops source_file = {
    .open = file_open,
    .close = file_close,
    .query = file_query,
    .name = file_name,
    .warning = file_warning,
    .live_open = file_live_open,
    .live_close = file_live_close,
    .live_next = file_live_next,
};
