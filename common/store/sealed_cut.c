#include "common/store/sealed_cut.h"

#include <stdlib.h>

#include "common/store/seal_columns.h"

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "store: out of memory");
}

enum status sealed_cut_add(struct sealed_cut *cut, int64_t id, struct error *err)
{
    if (cut->count == cut->room) {
        const uint32_t room = cut->room ? 2 * cut->room : 1024;
        int64_t *bigger = realloc(cut->ids, room * sizeof *bigger);
        if (!bigger)
            return out_of_memory(err);
        cut->ids = bigger;
        cut->room = room;
    }
    cut->ids[cut->count++] = id;
    return STATUS_OK;
}

void sealed_cut_deinit(struct sealed_cut *cut)
{
    seal_writer_free(cut->writer);
    for (unsigned i = 0; i < SEAL_COLUMNS_MAX; i++) {
        free(cut->rows.values[i]);
        free(cut->absent[i]);
    }
    free(cut->ids);
    *cut = (struct sealed_cut){.count = 0};
}

// ---- What is left ---------------------------------------------------------------------

static enum status make_room(struct sealed_cut *cut, struct error *err)
{
    cut->rows.columns = seal_columns((enum record_kind)cut->segment.kind, cut->rows.names);
    cut->rows.group = seal_group((enum record_kind)cut->segment.kind);
    cut->rows.behind = seal_behind((enum record_kind)cut->segment.kind);
    for (unsigned i = 0; i < cut->rows.columns; i++) {
        cut->rows.values[i] = calloc((size_t)cut->segment.rows, sizeof **cut->rows.values);
        cut->absent[i] = calloc((size_t)cut->segment.rows, 1);
        if (!cut->rows.values[i] || !cut->absent[i])
            return out_of_memory(err);
    }
    return STATUS_OK;
}

// A column without the rows that go: those are found in step with the ids, which rise in
// both.
static enum status copy_column(struct sealed_cut *cut, const int64_t *ids,
                               struct seal_reader *reader, unsigned column)
{
    struct seal_column from = {NULL, NULL};
    const int place = seal_reader_find(reader, cut->rows.names[column]);
    uint32_t out = 0, gone = 0;
    if (place >= 0) {
        enum status status = seal_reader_column(reader, (unsigned)place, &from);
        if (status != STATUS_OK)
            return status;
    }
    for (uint32_t i = 0; i < seal_reader_count(reader); i++) {
        if (gone < cut->count && ids[i] == cut->ids[gone]) {
            gone++;
            continue;
        }
        const bool is_absent = !from.values || (from.is_absent && from.is_absent[i]);
        cut->rows.values[column][out] = is_absent ? 0 : from.values[i];
        cut->absent[column][out++] = is_absent;
        if (is_absent)
            cut->rows.is_absent[column] = cut->absent[column];
    }
    cut->rows.count = out;
    return gone == cut->count ? STATUS_OK : STATUS_CORRUPT;
}

static void describe(struct sealed_cut *cut)
{
    const int64_t *ids = cut->rows.values[SEAL_ID], *times = cut->rows.values[SEAL_STARTED];
    cut->left = (struct sealed_segment){.kind = cut->segment.kind,
                                        .first_id = ids[0],
                                        .last_id = ids[cut->rows.count - 1],
                                        .first_started_ns = times[0],
                                        .last_started_ns = times[0],
                                        .rows = cut->rows.count};
    for (uint32_t i = 1; i < cut->rows.count; i++) {
        if (times[i] < cut->left.first_started_ns)
            cut->left.first_started_ns = times[i];
        if (times[i] > cut->left.last_started_ns)
            cut->left.last_started_ns = times[i];
    }
}

static enum status pack(struct sealed_cut *cut)
{
    struct seal_guess guesses[SEAL_GUESSES_MAX];
    const unsigned count = seal_guesses((enum record_kind)cut->segment.kind, guesses);
    enum status status = seal_writer_new(&cut->writer, &cut->rows, guesses, count);
    bool is_done = false;
    while (status == STATUS_OK && !is_done)
        status = seal_writer_step(cut->writer, &is_done);
    return status;
}

static enum status copy_left(struct sealed_cut *cut, struct seal_reader *reader, struct error *err)
{
    struct seal_column ids = {NULL, NULL};
    const int id_place = seal_reader_find(reader, cut->rows.names[SEAL_ID]);
    enum status status =
        id_place < 0 ? STATUS_CORRUPT : seal_reader_column(reader, (unsigned)id_place, &ids);
    for (unsigned i = 0; i < cut->rows.columns && status == STATUS_OK; i++)
        status = copy_column(cut, ids.values, reader, i);
    if (status == STATUS_OK && cut->rows.count > 0) {
        describe(cut);
        status = pack(cut);
    }
    if (status == STATUS_NOMEM)
        return out_of_memory(err);
    if (status != STATUS_OK)
        return sealed_is_damaged(&cut->segment, "their bytes make no sense", err);
    return STATUS_OK;
}

enum status sealed_cut_prepare(struct sealed_cut *cut, struct sqlite3 *db, struct error *err)
{
    struct seal_reader *reader = NULL;
    if (cut->count == cut->segment.rows)
        return STATUS_OK;
    enum status status = sealed_load(db, &cut->segment, &reader, err);
    if (status == STATUS_OK)
        status = make_room(cut, err);
    if (status == STATUS_OK)
        status = copy_left(cut, reader, err);
    seal_reader_free(reader);
    return status;
}

enum status sealed_cut_store(const struct sealed_cut *cut, struct sqlite3 *db, struct error *err)
{
    enum status status = sealed_remove(db, &cut->segment, err);
    if (status != STATUS_OK || cut->left.rows == 0)
        return status;
    size_t size = 0;
    const void *bytes = seal_writer_bytes(cut->writer, &size);
    return sealed_add(db, &cut->left, &cut->rows, bytes, size, err);
}
