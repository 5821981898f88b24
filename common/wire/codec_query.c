// Encodes and decodes Query, Reply and the live messages.
#include <stddef.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/wire/codec_parts.h"

// ---- Query -----------------------------------------------------------------------

// The filter's texts on the wire, by dimension.
static const size_t filter_texts[QUERY_DIMENSION_COUNT] = {
    [QUERY_BY_MODEL] = offsetof(Inferstat__Filter, model),
    [QUERY_BY_HOST] = offsetof(Inferstat__Filter, host),
    [QUERY_BY_DEVICE] = offsetof(Inferstat__Filter, device),
    [QUERY_BY_RUN] = offsetof(Inferstat__Filter, run),
    [QUERY_BY_OPERATION] = offsetof(Inferstat__Filter, operation),
    [QUERY_BY_STAGE] = offsetof(Inferstat__Filter, stage),
    [QUERY_BY_WORKLOAD] = offsetof(Inferstat__Filter, workload),
    [QUERY_BY_STATUS] = offsetof(Inferstat__Filter, status),
};

static char *pack_query_text(struct arena *arena, const char *text, size_t size_max)
{
    return codec_pack_text(arena,
                           (struct wire_bytes){.size = strnlen(text, size_max), .bytes = text});
}

// NULL when out of memory.
static Inferstat__Filter *pack_filter(struct arena *arena, const struct query_filter *from)
{
    Inferstat__Filter *to = codec_new(arena, &inferstat__filter__descriptor);
    if (!to)
        return NULL;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        char *text = pack_query_text(arena, from->by[i], QUERY_TEXT_SIZE);
        memcpy((char *)to + filter_texts[i], &text, sizeof text);
    }
    to->since_ns = from->since_ns;
    to->until_ns = from->until_ns;
    return to;
}

// A text that does not fit `size` bytes, or has a NUL inside, is left unterminated:
// query_check refuses it and the asker gets an answer.
static void read_query_text(char *out, size_t size, const char *packed)
{
    struct wire_bytes text = codec_read_text(packed);
    if (text.size >= size || (text.size && memchr(text.bytes, '\0', text.size))) {
        memset(out, '?', size);
        return;
    }
    if (text.size)
        memcpy(out, text.bytes, text.size);
    out[text.size] = '\0';
}

static void read_filter(struct query_filter *to, const Inferstat__Filter *from)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        const char *packed;
        memcpy(&packed, (const char *)from + filter_texts[i], sizeof packed);
        read_query_text(to->by[i], QUERY_TEXT_SIZE, packed);
    }
    to->since_ns = from->since_ns;
    to->until_ns = from->until_ns;
}

// Where the query is packed, `arena` is its memory; NULL: it is read.
static void copy_text(struct arena *arena, char **wire, char *own, size_t size)
{
    if (arena)
        *wire = pack_query_text(arena, own, size);
    else
        read_query_text(own, size, *wire);
}

#define COPY(wire, own) (arena ? (void)((wire) = (own)) : (void)((own) = (wire)))

static void copy_filter(struct arena *arena, Inferstat__Filter **wire, struct query_filter *own)
{
    if (arena)
        *wire = pack_filter(arena, own);
    else if (*wire)
        read_filter(own, *wire);
}

// Copies what only queries of this kind have.
static void copy_own(struct arena *arena, Inferstat__Query *wire, struct query *own)
{
    switch ((int)own->kind) {
    case QUERY_RECORDS:
        if (arena)
            wire->record_kind = (uint32_t)own->records.kind;
        else
            own->records.kind = wire->record_kind < RECORD_KIND_COUNT
                                    ? (enum record_kind)wire->record_kind
                                    : RECORD_KIND_COUNT;
        COPY(wire->oldest_first, own->records.oldest_first);
        break;
    case QUERY_AVERAGE:
        copy_text(arena, &wire->slo, own->average.slo, QUERY_TEXT_SIZE);
        break;
    case QUERY_AUTHORIZE:
    case QUERY_REVOKE:
        copy_text(arena, &wire->key, own->key.text, QUERY_KEY_SIZE);
        COPY(wire->roles, own->key.roles);
        copy_text(arena, &wire->name, own->key.name, QUERY_KEY_SIZE);
        copy_text(arena, &wire->replaces, own->key.replaces, QUERY_KEY_SIZE);
        break;
    case QUERY_BASELINE_SAVE:
    case QUERY_BASELINE_DELETE:
        copy_text(arena, &wire->baseline, own->baseline.name, QUERY_KEY_SIZE);
        COPY(wire->force, own->baseline.force);
        break;
    case QUERY_COMPARE:
        copy_text(arena, &wire->baseline, own->compare.baseline[0], QUERY_KEY_SIZE);
        copy_text(arena, &wire->other_baseline, own->compare.baseline[1], QUERY_KEY_SIZE);
        copy_filter(arena, &wire->other, &own->compare.other);
        COPY(wire->force, own->compare.force);
        COPY(wire->margin, own->compare.margin);
        break;
    case QUERY_COPY:
    case QUERY_IMPORT:
        COPY(wire->bundle, own->file.bundle);
        copy_text(arena, &wire->path, own->file.path, QUERY_PATH_SIZE);
        break;
    default:
        break;
    }
}

// Copies what all queries have, then their own.
static void copy_query(struct arena *arena, Inferstat__Query *wire, struct query *own)
{
    copy_text(arena, &wire->metric, own->metric, QUERY_TEXT_SIZE);
    copy_filter(arena, &wire->filter, &own->filter);
    COPY(wire->step_ns, own->step_ns);
    COPY(wire->limit, own->limit);
    COPY(wire->cursor, own->cursor);
    copy_own(arena, wire, own);
}

#undef COPY

Inferstat__Query *codec_pack_query(struct arena *arena, const struct message_query *query)
{
    const struct query *from = &query->query;
    Inferstat__Query *to = codec_new(arena, &inferstat__query__descriptor);
    if (!to)
        return NULL;
    to->id = query->id;
    to->protocol = query->protocol;
    to->kind = (Inferstat__QueryKind)from->kind;
    to->n_group_by =
        from->group_count < QUERY_DIMENSION_COUNT ? from->group_count : QUERY_DIMENSION_COUNT;
    to->group_by = arena_array(arena, &to->n_group_by, sizeof *to->group_by);
    for (size_t i = 0; i < to->n_group_by; i++)
        to->group_by[i] = (uint32_t)from->group_by[i];
    copy_query(arena, to, codec_borrow(from)); // not changed when packed
    return to;
}

// Numbers out of range become the first invalid number, for query_check.
static void read_groups(struct query *to, const Inferstat__Query *from)
{
    if (from->n_group_by > QUERY_DIMENSION_COUNT) {
        to->group_count = QUERY_DIMENSION_COUNT + 1;
        return;
    }
    to->group_count = (unsigned)from->n_group_by;
    for (unsigned i = 0; i < to->group_count; i++)
        to->group_by[i] = from->group_by[i] < QUERY_DIMENSION_COUNT
                              ? (enum query_dimension)from->group_by[i]
                              : QUERY_DIMENSION_COUNT;
}

enum status codec_read_query(struct message_query *query, const Inferstat__Query *from,
                             struct error *err)
{
    (void)err; // what makes no sense is for query_check to say, with the id at hand
    struct query *to = &query->query;
    query->id = from->id;
    query->protocol = from->protocol;
    to->kind =
        (unsigned)from->kind < QUERY_KIND_COUNT ? (enum query_kind)from->kind : QUERY_KIND_COUNT;
    read_groups(to, from);
    copy_query(NULL, codec_borrow(from), to); // not changed when read
    return STATUS_OK;
}

// ---- Results ---------------------------------------------------------------------

static void pack_result_column(struct arena *arena, Inferstat__ResultColumn *to,
                               const struct result *result, unsigned index)
{
    const struct result_column *about = result_column(result, index);
    size_t rows = result_row_count(result);
    to->key = codec_borrow(about->key);
    to->unit = codec_borrow(unit_name(about->unit));
    size_t counts[VALUE_TEXT + 1] = {0};
    for (size_t row = 0; row < rows; row++)
        counts[result_cell(result, row, index).type]++;

    // Counted again below: they are 0 where there is no memory.
    uint8_t *types = arena_array(arena, &rows, sizeof *types);
    to->types = codec_pack_bytes(types, rows);
    to->ints = arena_array(arena, &counts[VALUE_INT], sizeof *to->ints);
    to->reals = arena_array(arena, &counts[VALUE_REAL], sizeof *to->reals);
    to->texts = arena_array(arena, &counts[VALUE_TEXT], sizeof *to->texts);
    if (arena_failed(arena))
        return;
    for (size_t row = 0; row < rows; row++) {
        struct value value = result_cell(result, row, index);
        types[row] = (uint8_t)value.type;
        if (value.type == VALUE_INT)
            to->ints[to->n_ints++] = value.i;
        else if (value.type == VALUE_REAL)
            to->reals[to->n_reals++] = value.r;
        else if (value.type == VALUE_TEXT)
            to->texts[to->n_texts++] = codec_pack_bytes(value.text.bytes, value.text.size);
    }
}

static Inferstat__ResultColumn **pack_result(struct arena *arena, const struct result *result,
                                             size_t *count)
{
    *count = result ? result_column_count(result) : 0;
    Inferstat__ResultColumn **list =
        codec_list(arena, count, &inferstat__result_column__descriptor);
    for (unsigned i = 0; i < *count; i++)
        pack_result_column(arena, list[i], result, i);
    return list;
}

static enum unit find_unit(struct wire_bytes name)
{
    for (unsigned unit = 0; unit < UNIT_COUNT_OF; unit++)
        if (strlen(unit_name((enum unit)unit)) == name.size &&
            (name.size == 0 || memcmp(unit_name((enum unit)unit), name.bytes, name.size) == 0))
            return (enum unit)unit;
    return UNIT_NONE; // newer than this program: shown as a plain number
}

// Whether a column has as many values as its types say.
static bool column_is_sound(const Inferstat__ResultColumn *column, size_t rows)
{
    size_t counts[VALUE_TEXT + 1] = {0};
    if (column->types.len != rows)
        return false;
    for (size_t row = 0; row < rows; row++) {
        if (column->types.data[row] > VALUE_TEXT)
            return false;
        counts[column->types.data[row]]++;
    }
    struct wire_bytes key = codec_read_text(column->key);
    return counts[VALUE_INT] == column->n_ints && counts[VALUE_REAL] == column->n_reals &&
           counts[VALUE_TEXT] == column->n_texts && key.size > 0 && key.size < 64 &&
           codec_text_is_sound(key, 63);
}

// The position in the values of a column.
struct cursor {
    size_t ints, reals, texts;
};

static const char *read_cell(struct result *result, unsigned index, size_t row,
                             const Inferstat__ResultColumn *column, struct cursor *cursor)
{
    switch ((enum value_type)column->types.data[row]) {
    case VALUE_NULL:
        break;
    case VALUE_INT:
        result_set_int(result, index, column->ints[cursor->ints++]);
        break;
    case VALUE_REAL:
        result_set_real(result, index, column->reals[cursor->reals++]);
        break;
    case VALUE_TEXT: {
        ProtobufCBinaryData text = column->texts[cursor->texts++];
        if (!text_is_utf8((const char *)text.data, text.len))
            return "a text that is not UTF-8";
        if (result_set_text(result, index, (const char *)text.data, text.len) != STATUS_OK)
            return status_text(STATUS_NOMEM);
        break;
    }
    }
    return NULL;
}

static const char *read_rows(struct result *result, Inferstat__ResultColumn *const *columns,
                             size_t count, size_t rows)
{
    struct cursor cursors[MESSAGE_COLUMNS_MAX] = {0};
    for (size_t row = 0; row < rows; row++) {
        if (result_add_row(result) != STATUS_OK)
            return status_text(STATUS_NOMEM);
        for (unsigned i = 0; i < count; i++) {
            const char *fault = read_cell(result, i, row, columns[i], &cursors[i]);
            if (fault)
                return fault;
        }
    }
    return NULL;
}

static const char *read_result(struct result *result, Inferstat__ResultColumn *const *columns,
                               size_t count, size_t rows)
{
    if (count > MESSAGE_COLUMNS_MAX || rows > QUERY_ROWS_MAX)
        return "more columns or rows than an answer may have";
    if (count == 0 && rows > 0)
        return "rows without columns";
    for (size_t i = 0; i < count; i++) {
        if (!column_is_sound(columns[i], rows))
            return "a column that does not fit its rows";
        if (result_add_column(result, columns[i]->key,
                              find_unit(codec_read_text(columns[i]->unit))) != STATUS_OK)
            return status_text(STATUS_NOMEM);
    }
    return read_rows(result, columns, count, rows);
}

static enum status new_result(struct result **out, const char *what,
                              Inferstat__ResultColumn *const *columns, size_t count, size_t rows,
                              struct error *err)
{
    if (result_new(out) != STATUS_OK)
        return error_no_memory(err, what);
    const char *fault = read_result(*out, columns, count, rows);
    if (!fault)
        return STATUS_OK;
    enum status status = fault == status_text(STATUS_NOMEM) ? STATUS_NOMEM : STATUS_INVALID;
    return error_set(err, status, "%s: %s", what, fault);
}

// ---- Reply -----------------------------------------------------------------------

Inferstat__Reply *codec_pack_reply(struct arena *arena, const struct message_reply *reply)
{
    Inferstat__Reply *to = codec_new(arena, &inferstat__reply__descriptor);
    if (!to)
        return NULL;
    to->id = reply->id;
    to->status = (uint32_t)reply->status;
    to->error = codec_pack_text(arena, reply->error);
    to->expired_ns = reply->expired_ns;
    to->columns = pack_result(arena, reply->result, &to->n_columns);
    to->row_count = reply->result ? (uint32_t)result_row_count(reply->result) : 0;
    to->next_cursor = reply->result ? result_next_cursor(reply->result) : 0;
    return to;
}

enum status codec_read_reply(struct message_reply *reply, const Inferstat__Reply *from,
                             struct error *err)
{
    reply->id = from->id;
    reply->status =
        from->status <= REPLY_TOO_LARGE ? (enum reply_status)from->status : REPLY_FAILED;
    reply->error = codec_read_text(from->error);
    reply->expired_ns = from->expired_ns;
    if (!codec_text_is_sound(reply->error, MESSAGE_TEXT_SIZE_MAX))
        return error_set(err, STATUS_INVALID, "Reply: the error is too long or not UTF-8");
    enum status status =
        new_result(&reply->result, "Reply", from->columns, from->n_columns, from->row_count, err);
    if (status == STATUS_OK)
        result_set_next_cursor(reply->result, from->next_cursor);
    return status;
}

// ---- Live ------------------------------------------------------------------------

Inferstat__LiveCredit *codec_pack_live_credit(struct arena *arena,
                                              const struct message_live_credit *credit)
{
    size_t one = 1;
    Inferstat__LiveCredit *to = arena_array(arena, &one, sizeof *to);
    size_t room = RECORD_KIND_COUNT;
    uint32_t *kinds = arena_array(arena, &room, sizeof *kinds);
    if (!to || !kinds)
        return NULL;
    inferstat__live_credit__init(to);
    to->protocol = credit->protocol;
    to->messages = credit->messages;
    to->ids_only = credit->ids_only;
    to->kinds = kinds;
    for (uint32_t kind = 0; kind < RECORD_KIND_COUNT; kind++)
        if (credit->kinds >> kind & 1)
            kinds[to->n_kinds++] = kind;
    return to;
}

enum status codec_read_live_credit(struct message_live_credit *credit,
                                   const Inferstat__LiveCredit *from, struct error *err)
{
    credit->protocol = from->protocol;
    credit->messages = from->messages;
    credit->ids_only = from->ids_only;
    for (size_t i = 0; i < from->n_kinds; i++)
        if (from->kinds[i] < RECORD_KIND_COUNT)
            credit->kinds |= UINT32_C(1) << from->kinds[i];
    if (from->n_kinds && !credit->kinds)
        return error_set(err, STATUS_INVALID, "LiveCredit: none of the kinds is known");
    return STATUS_OK;
}

Inferstat__LiveRecords *codec_pack_live_records(struct arena *arena,
                                                const struct message_live_records *records)
{
    Inferstat__LiveRecords *to = codec_new(arena, &inferstat__live_records__descriptor);
    if (!to)
        return NULL;
    to->kind = (uint32_t)records->kind;
    to->columns = pack_result(arena, records->result, &to->n_columns);
    to->row_count = records->result ? (uint32_t)result_row_count(records->result) : 0;
    to->missed = records->missed;
    to->last_id = records->last_id;
    return to;
}

enum status codec_read_live_records(struct message_live_records *records,
                                    const Inferstat__LiveRecords *from, struct error *err)
{
    if (from->kind >= RECORD_KIND_COUNT)
        return error_set(err, STATUS_INVALID, "LiveRecords: of a kind that is unknown");
    records->kind = (enum record_kind)from->kind;
    records->missed = from->missed;
    records->last_id = from->last_id;
    return new_result(&records->result, "LiveRecords", from->columns, from->n_columns,
                      from->row_count, err);
}
