// The tables of a Batch between columns and protobuf.  Reading them is the
// collector's hot path: arrays are checked and turned into absolute values where
// protobuf-c put them.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/wire/codec_parts.h"

// ---- Packing ---------------------------------------------------------------------

static void pack_column(struct arena *arena, Inferstat__Column *to, const struct wire_column *from,
                        enum column_type type, size_t count)
{
    to->index = from->index;
    if (from->present)
        to->present = codec_pack_bytes(from->present, (count + 7) / 8);
    if (type == COLUMN_REAL) {
        to->n_reals = count;
        to->reals = codec_borrow(from->reals);
    } else if (type == COLUMN_NAME) {
        to->n_names = count;
        to->names = codec_borrow(from->names);
    } else if (type == COLUMN_TEXT || type == COLUMN_BLOB) {
        to->n_texts = count;
        to->texts = arena_array(arena, &to->n_texts, sizeof *to->texts);
        for (size_t i = 0; i < to->n_texts; i++)
            to->texts[i] = codec_pack_bytes(from->texts[i].bytes, from->texts[i].size);
    } else {
        to->n_ints = count;
        to->ints = codec_borrow(from->ints);
    }
}

// Each value less the one before, the first as it is.  Unsigned arithmetic:
// what wraps here wraps back in the reader's check.
static void pack_deltas(struct arena *arena, Inferstat__Table *to, const struct wire_table *from)
{
    to->n_number_deltas = from->count;
    to->number_deltas = arena_array(arena, &to->n_number_deltas, sizeof *to->number_deltas);
    uint64_t number = 0;
    for (size_t i = 0; i < to->n_number_deltas; i++) {
        to->number_deltas[i] = from->numbers[i] - number;
        number = from->numbers[i];
    }
    to->n_started_ns_deltas = from->count;
    to->started_ns_deltas = arena_array(arena, &to->n_started_ns_deltas, sizeof(int64_t));
    int64_t started_ns = 0;
    for (size_t i = 0; i < to->n_started_ns_deltas; i++) {
        to->started_ns_deltas[i] = (int64_t)((uint64_t)from->started_ns[i] - (uint64_t)started_ns);
        started_ns = from->started_ns[i];
    }
}

static void pack_table(struct arena *arena, Inferstat__Table *to, const struct wire_table *from)
{
    const struct record_kind_info *info = record_kind_info(from->kind);
    to->kind = (uint32_t)from->kind;
    pack_deltas(arena, to, from);
    to->n_columns = from->column_count;
    to->columns = codec_new_list(arena, &to->n_columns, &inferstat__column__descriptor);
    for (size_t i = 0; i < to->n_columns; i++)
        pack_column(arena, to->columns[i], &from->columns[i],
                    info->columns[from->columns[i].index].type, from->count);
}

void codec_pack_tables(struct arena *arena, Inferstat__Batch *to, const struct message_batch *batch)
{
    to->n_tables = batch->table_count;
    to->tables = codec_new_list(arena, &to->n_tables, &inferstat__table__descriptor);
    for (size_t i = 0; i < to->n_tables; i++)
        pack_table(arena, to->tables[i], &batch->tables[i]);
}

// ---- Columns ---------------------------------------------------------------------
//
// Functions that return a text say what is at fault, NULL when nothing is.

// Integers that count or measure cannot be negative, and where they are beyond
// all measure a sum of them would say nothing of the others; the offset between
// two clocks is the one duration that can be negative, and it is in no kind that
// is sent.
static bool unit_is_signed(enum unit unit)
{
    return unit != UNIT_DURATION && unit != UNIT_BYTES && unit != UNIT_COUNT && unit != UNIT_TOKENS;
}

static const char *check_ints(const int64_t *values, const uint8_t *present, size_t count,
                              const struct record_column *column)
{
    int64_t highest = MESSAGE_VALUE_MAX;
    if (column_type_is_enum(column->type))
        for (highest = 0; column_enum_text(column->type, highest + 1); highest++) {
            // Numbers of an enumeration follow each other from 0.
        }
    else if (unit_is_signed(column->unit))
        return NULL;
    bool sound = true;
    for (size_t i = 0; i < count; i++)
        sound &= (values[i] >= 0 && values[i] <= highest) || !wire_has_value(present, i);
    if (sound)
        return NULL;
    return column_type_is_enum(column->type) ? "a number that is none of the enumeration's"
                                             : "a value that cannot be: negative or beyond 2^53";
}

static const char *check_reals(const double *values, const uint8_t *present, size_t count)
{
    bool sound = true;
    for (size_t i = 0; i < count; i++)
        sound &= isfinite(values[i]) || !wire_has_value(present, i);
    return sound ? NULL : "a value that is not finite";
}

static const char *check_names(const uint32_t *values, const uint8_t *present, size_t count)
{
    bool sound = true;
    for (size_t i = 0; i < count; i++)
        sound &= (values[i] >= 1 && values[i] <= MESSAGE_NAMES_MAX) || !wire_has_value(present, i);
    return sound ? NULL : "an id of a name that is out of range";
}

static const char *read_texts(struct arena *arena, struct wire_column *to,
                              const Inferstat__Column *from, const struct record_column *column)
{
    const bool is_error = strcmp(column->name, "error") == 0;
    size_t count = from->n_texts;
    struct wire_bytes *texts = arena_array(arena, &count, sizeof *texts);
    for (size_t i = 0; i < count; i++) {
        texts[i] = (struct wire_bytes){.size = from->texts[i].len,
                                       .bytes = (const char *)from->texts[i].data};
        if (texts[i].size > MESSAGE_TEXT_SIZE_MAX)
            return "a text that is too long";
        if (column->type == COLUMN_TEXT && wire_has_value(to->present, i) &&
            !codec_text_is_sound(texts[i], MESSAGE_TEXT_SIZE_MAX))
            return "a text that is not UTF-8";
        if (is_error)
            texts[i].size = text_cut(texts[i].bytes, texts[i].size, MESSAGE_ERROR_KEPT);
    }
    to->texts = texts;
    return NULL;
}

// The presence bitmap; none where all rows have a value.
static const char *read_presence(struct wire_column *to, const Inferstat__Column *from,
                                 size_t count, bool maybe)
{
    if (from->present.len == 0)
        return NULL;
    if (from->present.len != (count + 7) / 8)
        return "a presence bitmap of the wrong size";
    const uint8_t *present = from->present.data;
    size_t with_value = 0;
    for (size_t i = 0; i < count; i++)
        with_value += wire_has_value(present, i);
    if (with_value == count)
        return NULL;
    to->present = present;
    return maybe ? NULL : "no value in a record that must have one";
}

static const char *read_values(struct arena *arena, struct wire_column *to,
                               const Inferstat__Column *from, const struct record_column *column,
                               size_t count)
{
    size_t given = from->n_ints + from->n_reals + from->n_names + from->n_texts;
    if (given != count)
        return "not as many values as records";
    if (column->type == COLUMN_REAL) {
        to->reals = from->reals;
        return from->n_reals == count ? check_reals(to->reals, to->present, count)
                                      : "values of another type";
    }
    if (column->type == COLUMN_NAME) {
        to->names = from->names;
        return from->n_names == count ? check_names(to->names, to->present, count)
                                      : "values of another type";
    }
    if (column->type == COLUMN_TEXT || column->type == COLUMN_BLOB)
        return from->n_texts == count ? read_texts(arena, to, from, column)
                                      : "values of another type";
    to->ints = from->ints;
    return from->n_ints == count ? check_ints(to->ints, to->present, count, column)
                                 : "values of another type";
}

// The fault with the names of the kind and column in front.
static const char *column_fault(struct arena *arena, const char *kind, const char *column,
                                const char *fault)
{
    enum { SIZE = 160 };
    char *text = arena_alloc(arena, SIZE);
    if (!text)
        return fault;
    (void)snprintf(text, SIZE, "%s.%s: %s", kind, column, fault);
    return text;
}

// ---- Tables ----------------------------------------------------------------------

// Bit i: number first + i has been seen in a table.
struct seen {
    uint64_t first, last;
    size_t count;
    uint64_t bits[DELIVERY_BATCH_MAX / 64];
};

// Turns deltas into numbers and times in place.
static const char *read_identity(const Inferstat__Table *from, struct seen *seen)
{
    uint64_t number = 0;
    int64_t started_ns = 0;
    for (size_t i = 0; i < from->n_number_deltas; i++) {
        uint64_t delta = from->number_deltas[i];
        if (delta == 0 || delta > MESSAGE_NUMBER_MAX - number)
            return "numbers that do not rise";
        number += delta;
        if (number < seen->first || number > seen->last)
            return "a number outside the batch's range";
        uint64_t place = number - seen->first;
        if (seen->bits[place / 64] >> place % 64 & 1)
            return "a number twice";
        seen->bits[place / 64] |= UINT64_C(1) << place % 64;
        from->number_deltas[i] = number;
        if (__builtin_add_overflow(started_ns, from->started_ns_deltas[i], &started_ns))
            return "a time that does not fit 64 bits";
        from->started_ns_deltas[i] = started_ns;
    }
    seen->count += from->n_number_deltas;
    return NULL;
}

// Columns that every record of the kind has, bit i for column i.
static uint64_t always_present(const struct record_kind_info *info)
{
    uint64_t columns = 0;
    for (unsigned i = 0; i < info->column_count; i++)
        if (!info->columns[i].maybe)
            columns |= UINT64_C(1) << i;
    return columns;
}

static const char *read_columns(struct arena *arena, struct wire_table *to,
                                const Inferstat__Table *from, uint32_t *unknown)
{
    const struct record_kind_info *info = record_kind_info(to->kind);
    if (from->n_columns > MESSAGE_COLUMNS_MAX)
        return "more columns than a table may have";
    size_t room = from->n_columns;
    struct wire_column *columns = arena_array(arena, &room, sizeof *columns);
    uint64_t seen = 0;
    for (size_t i = 0; i < room; i++) {
        const Inferstat__Column *source = from->columns[i];
        if (source->index >= info->column_count) {
            ++*unknown;
            continue;
        }
        const struct record_column *about = &info->columns[source->index];
        struct wire_column *column = &columns[to->column_count++];
        column->index = source->index;
        const char *fault = NULL;
        if (seen >> source->index & 1)
            fault = "the column twice";
        if (!fault)
            fault = read_presence(column, source, to->count, about->maybe);
        if (!fault)
            fault = read_values(arena, column, source, about, to->count);
        if (fault)
            return column_fault(arena, info->name, about->name, fault);
        seen |= UINT64_C(1) << source->index;
    }
    uint64_t missing = always_present(info) & ~seen;
    if (missing && room == from->n_columns)
        return column_fault(arena, info->name, info->columns[__builtin_ctzll(missing)].name,
                            "the column is missing");
    to->columns = columns;
    return NULL;
}

static const char *read_table(struct arena *arena, struct wire_table *to,
                              const Inferstat__Table *from, struct seen *seen, uint32_t *unknown)
{
    if (from->kind >= RECORD_KIND_COUNT || from->kind == RECORD_KIND_RUN)
        return "records of a kind that is unknown";
    if (from->n_number_deltas == 0)
        return "a table without records";
    if (from->n_number_deltas != from->n_started_ns_deltas)
        return "not as many times as numbers";
    to->kind = (enum record_kind)from->kind;
    to->count = from->n_number_deltas;
    const char *fault = read_identity(from, seen);
    if (fault)
        return fault;
    to->numbers = from->number_deltas;
    to->started_ns = from->started_ns_deltas;
    return read_columns(arena, to, from, unknown);
}

const char *codec_read_tables(struct arena *arena, struct message_batch *batch,
                              const Inferstat__Batch *from)
{
    if (from->n_tables > RECORD_KIND_COUNT)
        return "more tables than there are kinds";
    size_t count = from->n_tables;
    struct wire_table *tables = arena_array(arena, &count, sizeof *tables);
    struct seen seen = {.first = batch->first, .last = batch->last};
    unsigned kinds = 0;
    for (size_t i = 0; i < count; i++) {
        const char *fault =
            read_table(arena, &tables[i], from->tables[i], &seen, &batch->unknown_columns);
        if (fault)
            return fault;
        if (kinds >> tables[i].kind & 1)
            return "two tables of one kind";
        kinds |= 1U << tables[i].kind;
    }
    if (seen.count != batch->last - batch->first + 1)
        return "records missing from its range";
    batch->tables = tables;
    batch->table_count = count;
    return NULL;
}
