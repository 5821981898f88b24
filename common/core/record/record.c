#include "common/core/record/record.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"

#define PRESENCE_ALWAYS false
#define PRESENCE_MAYBE  true

#define COLUMN_INFO(id, column, column_type, column_unit, presence, text)                          \
    {.name = column,                                                                               \
     .meaning = text,                                                                              \
     .type = COLUMN_##column_type,                                                                 \
     .unit = UNIT_##column_unit,                                                                   \
     .maybe = PRESENCE_##presence},

#define COLUMNS(kind, table, many, text)                                                           \
    static const struct record_column columns_##kind[] = {RECORD_##kind(COLUMN_INFO)};             \
    _Static_assert(sizeof columns_##kind / sizeof *columns_##kind <= RECORD_VALUES_MAX,            \
                   "a record of this kind does not fit two slots");
RECORD_KINDS(COLUMNS)

static const struct record_kind_info kinds[RECORD_KIND_COUNT] = {
#define KIND_INFO(kind, table, many, text)                                                         \
    [RECORD_KIND_##kind] = {.name = table,                                                         \
                            .plural = many,                                                        \
                            .meaning = text,                                                       \
                            .columns = columns_##kind,                                             \
                            .column_count = sizeof columns_##kind / sizeof *columns_##kind},
    RECORD_KINDS(KIND_INFO)};

static const struct record_derived derived_columns[] = {
#define DERIVED_INFO(of, column, column_unit, over, under, text)                                   \
    {.name = column,                                                                               \
     .meaning = text,                                                                              \
     .numerator = over,                                                                            \
     .denominator = under,                                                                         \
     .kind = RECORD_KIND_##of,                                                                     \
     .unit = UNIT_##column_unit},
    RECORD_DERIVED(DERIVED_INFO)};

#define VALUE_TEXT_OF(number, name, text) [number] = text,
static const char *const status_texts[] = {RECORD_STATUS_VALUES(VALUE_TEXT_OF)};
static const char *const finish_texts[] = {RECORD_FINISH_VALUES(VALUE_TEXT_OF)};
static const char *const run_end_texts[] = {RECORD_RUN_END_VALUES(VALUE_TEXT_OF)};
static const char *const sync_texts[] = {RECORD_SYNC_VALUES(VALUE_TEXT_OF)};

static const struct {
    const char *const *texts;
    size_t count;
} enumerations[] = {
    [COLUMN_STATUS] = {status_texts, sizeof status_texts / sizeof *status_texts},
    [COLUMN_FINISH] = {finish_texts, sizeof finish_texts / sizeof *finish_texts},
    [COLUMN_RUN_END] = {run_end_texts, sizeof run_end_texts / sizeof *run_end_texts},
    [COLUMN_SYNC] = {sync_texts, sizeof sync_texts / sizeof *sync_texts},
};

const struct record_kind_info *record_kind_info(enum record_kind kind)
{
    assert((unsigned)kind < RECORD_KIND_COUNT);
    return &kinds[kind];
}

enum record_kind record_kind_find(const char *name)
{
    unsigned kind = 0;
    while (kind < RECORD_KIND_COUNT && strcmp(kinds[kind].name, name) != 0 &&
           strcmp(kinds[kind].plural, name) != 0)
        kind++;
    return (enum record_kind)kind;
}

const char *record_kind_words(const char *name)
{
    return strcmp(name, record_kind_info(RECORD_KIND_INFERENCE)->name) == 0 ? "request" : name;
}

void record_event_words(char *text, size_t size, const char *events, const char *const *said)
{
    static const char *const acronyms[] = {"PCIe", "XID", "ECC"};
    char name[64];
    for (const char *at = events; *at; at += strspn(at, ", ")) {
        const size_t whole = strcspn(at, ","), own = strcspn(at, ", ");
        const char *const *other = said;
        while (other && *other && (strlen(*other) != own || memcmp(*other, at, own) != 0))
            other++;
        (void)snprintf(name, sizeof name, "%.*s", (int)(whole < sizeof name ? whole : 0), at);
        at += whole;
        for (char *blank = strchr(name, '_'); blank; blank = strchr(blank, '_'))
            *blank = ' ';
        for (size_t i = 0; i < sizeof acronyms / sizeof *acronyms; i++) {
            const size_t length = strlen(acronyms[i]);
            if (strncasecmp(name, acronyms[i], length) == 0 && strchr(" ", name[length]))
                memcpy(name, acronyms[i], length);
        }
        if (!other || !*other)
            (void)text_append(text, size, ", ", "%s", name);
    }
}

int record_column_find(enum record_kind kind, const char *name)
{
    const struct record_kind_info *info = record_kind_info(kind);
    for (unsigned i = 0; i < info->column_count; i++)
        if (strcmp(info->columns[i].name, name) == 0)
            return (int)i;
    return -1;
}

const struct record_derived *record_derived(unsigned *count)
{
    *count = sizeof derived_columns / sizeof *derived_columns;
    return derived_columns;
}

bool column_type_is_enum(enum column_type type)
{
    return type >= COLUMN_STATUS;
}

const char *column_enum_text(enum column_type type, int64_t number)
{
    if (!column_type_is_enum(type) || number < 0 || (uint64_t)number >= enumerations[type].count)
        return NULL;
    return enumerations[type].texts[number];
}

const char *record_run_end_text(int64_t end, bool has_ended)
{
    return end == RECORD_RUN_END_SILENT && has_ended ? RECORD_RUN_DOWN
                                                     : column_enum_text(COLUMN_RUN_END, end);
}

const char *column_type_name(enum column_type type)
{
    switch (type) {
    case COLUMN_INT:
        return "integer";
    case COLUMN_REAL:
        return "real";
    case COLUMN_NAME:
        return "name";
    case COLUMN_TEXT:
        return "text";
    case COLUMN_BLOB:
        return "bytes";
    case COLUMN_STATUS:
    case COLUMN_FINISH:
    case COLUMN_RUN_END:
    case COLUMN_SYNC:
        break;
    }
    return "enumeration";
}

void record_init(struct record *record, enum record_kind kind, int64_t started_ns)
{
    const unsigned columns = record_kind_info(kind)->column_count;
    record->kind = (uint16_t)kind;
    record->used = (uint16_t)(columns * sizeof *record->values);
    record->reserved = 0;
    record->present = 0;
    record->started_ns = started_ns;
    memset(record->values, 0, columns * sizeof *record->values);
}

size_t record_text_room(const struct record *record)
{
    return sizeof record->bytes - record->used;
}

static void append(struct record *record, unsigned column, const void *bytes, size_t size)
{
    memcpy(record->bytes + record->used, bytes, size);
    record->values[column].i = 0;
    record->values[column].text.offset = record->used;
    record->values[column].text.size = (uint16_t)size;
    record->used = (uint16_t)(record->used + size);
    record->present |= UINT64_C(1) << column;
}

size_t record_set_text(struct record *record, unsigned column, const char *text, size_t size)
{
    const size_t taken = text_cut(text, size, record_text_room(record));
    append(record, column, text, taken);
    return taken;
}

size_t record_set_blob(struct record *record, unsigned column, const void *bytes, size_t size)
{
    if (size > record_text_room(record))
        return 0;
    append(record, column, bytes, size);
    return size;
}

const char *record_get_text(const struct record *record, unsigned column, size_t *size)
{
    *size = record->values[column].text.size;
    return record->bytes + record->values[column].text.offset;
}

static bool text_is_inside(const struct record *record, unsigned column)
{
    const struct record_text place = record->values[column].text;
    return place.offset <= record->used && place.size <= record->used - place.offset;
}

bool record_is_sound(const struct record *record)
{
    if (record->kind >= RECORD_KIND_COUNT || record->used > sizeof record->bytes)
        return false;
    const struct record_kind_info *info = &kinds[record->kind];
    if (record->present >> info->column_count != 0)
        return false;
    for (unsigned i = 0; i < info->column_count; i++) {
        const enum column_type type = info->columns[i].type;
        if (!record_has(record, i))
            continue;
        if ((i + 1) * sizeof *record->values > record->used)
            return false;
        if ((type == COLUMN_TEXT || type == COLUMN_BLOB) && !text_is_inside(record, i))
            return false;
    }
    return true;
}
