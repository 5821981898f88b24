// Encodes and decodes Query, Reply and the live messages.
#include <stddef.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/wire/codec_parts.h"

// ---- Query -----------------------------------------------------------------------

static const size_t filter_texts[QUERY_DIMENSION_COUNT] = {
    [QUERY_BY_MODEL] = offsetof(Inferstat__Filter, model),
    [QUERY_BY_HOST] = offsetof(Inferstat__Filter, host),
    [QUERY_BY_DEVICE] = offsetof(Inferstat__Filter, device),
    [QUERY_BY_RUN] = offsetof(Inferstat__Filter, run),
    [QUERY_BY_OPERATION] = offsetof(Inferstat__Filter, operation),
    [QUERY_BY_STAGE] = offsetof(Inferstat__Filter, stage),
    [QUERY_BY_WORKLOAD] = offsetof(Inferstat__Filter, workload),
    [QUERY_BY_STATUS] = offsetof(Inferstat__Filter, status),
    [QUERY_BY_SYNC] = offsetof(Inferstat__Filter, sync),
    [QUERY_BY_CHUNK_BYTES] = offsetof(Inferstat__Filter, chunk_bytes),
    [QUERY_BY_POOL_SIZE] = offsetof(Inferstat__Filter, pool_size),
    [QUERY_BY_SOURCE] = offsetof(Inferstat__Filter, source),
    [QUERY_BY_EVENT] = offsetof(Inferstat__Filter, event),
};

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

static void copy_text(const struct codec *codec, char **wire, char *own, size_t size)
{
    if (codec->packing)
        *wire = codec_pack_text(codec->arena, (struct wire_bytes){strnlen(own, size), own});
    else
        read_query_text(own, size, *wire);
}

static void copy_filter(const struct codec *codec, Inferstat__Filter **wire,
                        struct query_filter *own)
{
    if (codec->packing)
        *wire = codec_new(codec->arena, &inferstat__filter__descriptor);
    if (!*wire)
        return;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        copy_text(codec, (char **)(void *)((char *)*wire + filter_texts[i]), own->by[i],
                  QUERY_TEXT_SIZE);
    CODEC_COPY(codec, (*wire)->since_ns, own->since_ns);
    CODEC_COPY(codec, (*wire)->until_ns, own->until_ns);
}

static void copy_alert(const struct codec *codec, Inferstat__Query *wire, struct query *own)
{
    if (codec->packing) {
        wire->alert_list = (Inferstat__AlertList)own->alert.list;
        wire->alert_edit = (Inferstat__AlertEdit)own->alert.edit;
    } else {
        own->alert.list = (unsigned)wire->alert_list < QUERY_ALERT_LIST_COUNT
                              ? (enum query_alert_list)wire->alert_list
                              : QUERY_ALERT_LIST_COUNT;
        own->alert.edit = (unsigned)wire->alert_edit < QUERY_ALERT_EDIT_COUNT
                              ? (enum query_alert_edit)wire->alert_edit
                              : QUERY_ALERT_EDIT_COUNT;
    }
    CODEC_COPY(codec, wire->alert_id, own->alert.id);
    CODEC_COPY(codec, wire->alert_for_ns, own->alert.for_ns);
    copy_text(codec, &wire->alert_rule, own->alert.rule, QUERY_KEY_SIZE);
    copy_text(codec, &wire->alert_text, own->alert.text, QUERY_RULE_SIZE);
}

// Copies what only queries of this kind have.
static void copy_own(const struct codec *codec, Inferstat__Query *wire, struct query *own)
{
    switch ((int)own->kind) {
    case QUERY_RECORDS:
        if (codec->packing)
            wire->record_kind = (uint32_t)own->records.kind;
        else
            own->records.kind = wire->record_kind < RECORD_KIND_COUNT
                                    ? (enum record_kind)wire->record_kind
                                    : RECORD_KIND_COUNT;
        CODEC_COPY(codec, wire->oldest_first, own->records.oldest_first);
        break;
    case QUERY_AVERAGE:
        copy_text(codec, &wire->slo, own->average.slo, QUERY_TEXT_SIZE);
        CODEC_COPY(codec, wire->histogram, own->average.histogram);
        break;
    case QUERY_AUTHORIZE:
    case QUERY_REVOKE:
        copy_text(codec, &wire->key, own->key.text, QUERY_KEY_SIZE);
        CODEC_COPY(codec, wire->roles, own->key.roles);
        copy_text(codec, &wire->name, own->key.name, QUERY_KEY_SIZE);
        copy_text(codec, &wire->replaces, own->key.replaces, QUERY_KEY_SIZE);
        CODEC_COPY(codec, wire->expires_ns, own->key.expires_ns);
        break;
    case QUERY_FORGET:
        copy_text(codec, &wire->key, own->key.text, QUERY_KEY_SIZE);
        break;
    case QUERY_BASELINE_SAVE:
    case QUERY_BASELINE_DELETE:
        copy_text(codec, &wire->baseline, own->baseline.name, QUERY_KEY_SIZE);
        CODEC_COPY(codec, wire->force, own->baseline.force);
        break;
    case QUERY_COMPARE:
        copy_text(codec, &wire->baseline, own->compare.baseline[0], QUERY_KEY_SIZE);
        copy_text(codec, &wire->other_baseline, own->compare.baseline[1], QUERY_KEY_SIZE);
        copy_filter(codec, &wire->other, &own->compare.other);
        CODEC_COPY(codec, wire->force, own->compare.force);
        CODEC_COPY(codec, wire->margin, own->compare.margin);
        break;
    case QUERY_ALERTS:
    case QUERY_ALERT_EDIT:
    case QUERY_ALERT_TRY:
        copy_alert(codec, wire, own);
        break;
    case QUERY_COPY:
    case QUERY_IMPORT:
        CODEC_COPY(codec, wire->bundle, own->file.bundle);
        copy_text(codec, &wire->path, own->file.path, QUERY_PATH_SIZE);
        break;
    default:
        break;
    }
}

// Numbers out of range become the first invalid number, for query_check.
static void copy_groups(const struct codec *codec, Inferstat__Query *wire, struct query *own)
{
    size_t count = codec->packing ? own->group_count : wire->n_group_by;
    const bool fits = count <= QUERY_DIMENSION_COUNT;
    if (codec->packing) {
        wire->n_group_by = fits ? count : QUERY_DIMENSION_COUNT;
        wire->group_by = arena_array(codec->arena, &wire->n_group_by, sizeof *wire->group_by);
        for (size_t i = 0; i < wire->n_group_by; i++)
            wire->group_by[i] = (uint32_t)own->group_by[i];
        return;
    }
    own->group_count = fits ? (unsigned)count : QUERY_DIMENSION_COUNT + 1;
    for (unsigned i = 0; fits && i < own->group_count; i++)
        own->group_by[i] = wire->group_by[i] < QUERY_DIMENSION_COUNT
                               ? (enum query_dimension)wire->group_by[i]
                               : QUERY_DIMENSION_COUNT;
}

// What makes no sense is for query_check to say, with the id at hand.
const char *codec_copy_query(const struct codec *codec, void *packed, void *unpacked)
{
    Inferstat__Query *wire = packed;
    struct message_query *asked = unpacked;
    struct query *own = &asked->query;
    CODEC_COPY(codec, wire->id, asked->id);
    CODEC_COPY(codec, wire->protocol, asked->protocol);
    if (codec->packing)
        wire->kind = (Inferstat__QueryKind)own->kind;
    else
        own->kind = (unsigned)wire->kind < QUERY_KIND_COUNT ? (enum query_kind)wire->kind
                                                            : QUERY_KIND_COUNT;
    copy_groups(codec, wire, own);
    copy_text(codec, &wire->metric, own->metric, QUERY_TEXT_SIZE);
    copy_filter(codec, &wire->filter, &own->filter);
    CODEC_COPY(codec, wire->step_ns, own->step_ns);
    CODEC_COPY(codec, wire->limit, own->limit);
    CODEC_COPY(codec, wire->cursor, own->cursor);
    copy_own(codec, wire, own);
    return NULL;
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

static void pack_result(struct arena *arena, const struct result *result,
                        Inferstat__ResultColumn ***columns, size_t *count, uint32_t *rows)
{
    *count = result ? result_column_count(result) : 0;
    *rows = result ? (uint32_t)result_row_count(result) : 0;
    *columns = codec_new_list(arena, count, &inferstat__result_column__descriptor);
    for (unsigned i = 0; i < *count; i++)
        pack_result_column(arena, (*columns)[i], result, i);
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
    struct cursor cursors[MESSAGE_ANSWER_COLUMNS_MAX] = {0};
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

static const char *read_result(struct result **out, Inferstat__ResultColumn *const *columns,
                               size_t count, size_t rows)
{
    if (result_new(out) != STATUS_OK)
        return status_text(STATUS_NOMEM);
    if (count > MESSAGE_ANSWER_COLUMNS_MAX || rows > QUERY_ROWS_MAX)
        return "more columns or rows than an answer may have";
    if (count == 0 && rows > 0)
        return "rows without columns";
    for (size_t i = 0; i < count; i++) {
        if (!column_is_sound(columns[i], rows))
            return "a column that does not fit its rows";
        if (result_add_column(*out, columns[i]->key,
                              find_unit(codec_read_text(columns[i]->unit))) != STATUS_OK)
            return status_text(STATUS_NOMEM);
    }
    return read_rows(*out, columns, count, rows);
}

// ---- Reply -----------------------------------------------------------------------

const char *codec_copy_reply(const struct codec *codec, void *packed, void *unpacked)
{
    Inferstat__Reply *wire = packed;
    struct message_reply *own = unpacked;
    CODEC_COPY(codec, wire->id, own->id);
    CODEC_COPY(codec, wire->expired_ns, own->expired_ns);
    const char *fault =
        codec_copy_text(codec, &wire->error, &own->error, "the error is too long or not UTF-8");
    if (fault)
        return fault;
    if (codec->packing) {
        wire->status = (uint32_t)own->status;
        pack_result(codec->arena, own->result, &wire->columns, &wire->n_columns, &wire->row_count);
        wire->next_cursor = own->result ? result_next_cursor(own->result) : 0;
        wire->cpu_ns = own->result ? result_cpu_ns(own->result) : 0;
        return NULL;
    }
    own->status = wire->status <= REPLY_TOO_LARGE ? (enum reply_status)wire->status : REPLY_FAILED;
    fault = read_result(&own->result, wire->columns, wire->n_columns, wire->row_count);
    if (!fault) {
        result_set_next_cursor(own->result, wire->next_cursor);
        result_set_cpu_ns(own->result, wire->cpu_ns);
    }
    return fault;
}

// ---- Live ------------------------------------------------------------------------

const char *codec_copy_live_credit(const struct codec *codec, void *packed, void *unpacked)
{
    Inferstat__LiveCredit *wire = packed;
    struct message_live_credit *own = unpacked;
    CODEC_COPY(codec, wire->protocol, own->protocol);
    CODEC_COPY(codec, wire->messages, own->messages);
    CODEC_COPY(codec, wire->ids_only, own->ids_only);
    if (codec->packing) {
        size_t room = RECORD_KIND_COUNT;
        wire->kinds = arena_array(codec->arena, &room, sizeof *wire->kinds);
        for (uint32_t kind = 0; kind < room; kind++)
            if (own->kinds >> kind & 1)
                wire->kinds[wire->n_kinds++] = kind;
        return NULL;
    }
    for (size_t i = 0; i < wire->n_kinds; i++)
        if (wire->kinds[i] < RECORD_KIND_COUNT)
            own->kinds |= UINT32_C(1) << wire->kinds[i];
    return wire->n_kinds && !own->kinds ? "none of the kinds is known" : NULL;
}

const char *codec_copy_live_records(const struct codec *codec, void *packed, void *unpacked)
{
    Inferstat__LiveRecords *wire = packed;
    struct message_live_records *own = unpacked;
    CODEC_COPY(codec, wire->missed, own->missed);
    CODEC_COPY(codec, wire->last_id, own->last_id);
    if (codec->packing) {
        wire->kind = (uint32_t)own->kind;
        pack_result(codec->arena, own->result, &wire->columns, &wire->n_columns, &wire->row_count);
        return NULL;
    }
    if (wire->kind >= RECORD_KIND_COUNT)
        return "of a kind that is unknown";
    own->kind = (enum record_kind)wire->kind;
    return read_result(&own->result, wire->columns, wire->n_columns, wire->row_count);
}
