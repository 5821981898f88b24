// Record: one row of telemetry as a fixed-size C struct, with enums and metadata of all kinds
// and columns, generated from the schema in record_table.h.
#ifndef INFERSTAT_CORE_RECORD_H
#define INFERSTAT_CORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/base/unit.h"
#include "common/core/record/record_table.h"

enum record_kind {
#define RECORD_KIND_ENUM(kind, table, text) RECORD_KIND_##kind,
    RECORD_KINDS(RECORD_KIND_ENUM)
#undef RECORD_KIND_ENUM
        RECORD_KIND_COUNT
};

// Column positions, one enum per kind: INFERENCE_TTFT_NS is the position of ttft_ns in an
// inference; INFERENCE_COLUMNS is the number of columns.
#define RECORD_COLUMN_ENUM(column, name, type, unit, presence, text) column,
enum run_column { RECORD_RUN(RECORD_COLUMN_ENUM) RUN_COLUMNS };
enum device_column { RECORD_DEVICE(RECORD_COLUMN_ENUM) DEVICE_COLUMNS };
enum model_column { RECORD_MODEL(RECORD_COLUMN_ENUM) MODEL_COLUMNS };
enum startup_column { RECORD_STARTUP(RECORD_COLUMN_ENUM) STARTUP_COLUMNS };
enum load_column { RECORD_LOAD(RECORD_COLUMN_ENUM) LOAD_COLUMNS };
enum load_stage_column { RECORD_LOAD_STAGE(RECORD_COLUMN_ENUM) LOAD_STAGE_COLUMNS };
enum inference_column { RECORD_INFERENCE(RECORD_COLUMN_ENUM) INFERENCE_COLUMNS };
enum itl_column { RECORD_ITL(RECORD_COLUMN_ENUM) ITL_COLUMNS };
enum operation_column { RECORD_OPERATION(RECORD_COLUMN_ENUM) OPERATION_COLUMNS };
enum pipeline_column { RECORD_PIPELINE(RECORD_COLUMN_ENUM) PIPELINE_COLUMNS };
enum device_sample_column { RECORD_DEVICE_SAMPLE(RECORD_COLUMN_ENUM) DEVICE_SAMPLE_COLUMNS };
enum process_sample_column { RECORD_PROCESS_SAMPLE(RECORD_COLUMN_ENUM) PROCESS_SAMPLE_COLUMNS };
#undef RECORD_COLUMN_ENUM

#define RECORD_VALUE_ENUM_STATUS(number, name, text) RECORD_STATUS_##name = number,
enum record_status { RECORD_STATUS_VALUES(RECORD_VALUE_ENUM_STATUS) };
#undef RECORD_VALUE_ENUM_STATUS
#define RECORD_VALUE_ENUM_FINISH(number, name, text) RECORD_FINISH_##name = number,
enum record_finish { RECORD_FINISH_VALUES(RECORD_VALUE_ENUM_FINISH) };
#undef RECORD_VALUE_ENUM_FINISH
#define RECORD_VALUE_ENUM_END(number, name, text) RECORD_RUN_END_##name = number,
enum record_run_end { RECORD_RUN_END_VALUES(RECORD_VALUE_ENUM_END) };
#undef RECORD_VALUE_ENUM_END
#define RECORD_VALUE_ENUM_SYNC(number, name, text) RECORD_SYNC_##name = number,
enum record_sync { RECORD_SYNC_VALUES(RECORD_VALUE_ENUM_SYNC) };
#undef RECORD_VALUE_ENUM_SYNC

enum column_type {
    COLUMN_INT,
    COLUMN_REAL,
    COLUMN_NAME,
    COLUMN_TEXT,
    COLUMN_BLOB,
    COLUMN_STATUS, // enumerations from here on: stored as their number
    COLUMN_FINISH,
    COLUMN_RUN_END,
    COLUMN_SYNC,
};

struct record_column {
    const char *name;    // snake_case, unit last
    const char *meaning; // one line
    enum column_type type;
    enum unit unit;
    bool maybe; // may be absent
};

struct record_derived {
    const char *name;
    const char *meaning;
    const char *numerator;
    const char *denominator;
    enum record_kind kind;
    enum unit unit;
};

struct record_kind_info {
    const char *name; // also the table's name
    const char *meaning;
    const struct record_column *columns;
    unsigned column_count;
};

// All static and const; `kind` must be below RECORD_KIND_COUNT.
const struct record_kind_info *record_kind_info(enum record_kind kind);

// The kind of that name, or RECORD_KIND_COUNT.
enum record_kind record_kind_find(const char *name);

// The position of a column in its kind, or -1.
int record_column_find(enum record_kind kind, const char *name);

// The derived columns of all kinds, `*count` of them.
const struct record_derived *record_derived(unsigned *count);

// Whether the type is an enumeration; and the text of an enumeration's value, NULL if `number`
// is no value of it.
bool column_type_is_enum(enum column_type type);
const char *column_enum_text(enum column_type type, int64_t number);

// The type's name for people: "integer", "name", "enumeration"; static.
const char *column_type_name(enum column_type type);

// ---- One record -----------------------------------------------------------

enum {
    RECORD_SIZE = 512,
    RECORD_SLOT_SIZE = 256,  // size of a ring's slot; a record takes one or two
    RECORD_SLOT_VALUES = 29, // 8-byte values in one slot, after the header
    RECORD_VALUES_MAX = 61,  // in two slots
};

// One record.  `values` are in the kind's column order; an absent column has value 0 and a
// clear bit in `present`.  INT and enumerations are in `i`, REAL in `r`, NAME in `name` (an
// id of the run's name table, from 1).  TEXT and BLOB bytes follow the last column, at
// `text.offset` in `bytes`.  Only the header and the first `used` bytes of `values` are
// defined; only these may be read from a record in a ring.
struct record {
    uint16_t kind; // enum record_kind
    uint16_t used; // bytes of `values` in use, text included
    uint32_t reserved;
    uint64_t present;   // bit i: column i has a value
    int64_t started_ns; // wall clock, UTC
    union {
        union record_value {
            int64_t i;
            double r;
            uint32_t name;
            struct record_text {
                uint16_t offset;
                uint16_t size;
            } text;
        } values[RECORD_VALUES_MAX];
        char bytes[RECORD_VALUES_MAX * 8];
    };
};

_Static_assert(sizeof(struct record) == RECORD_SIZE, "two slots of a ring");
_Static_assert(offsetof(struct record, values[RECORD_SLOT_VALUES]) == RECORD_SLOT_SIZE,
               "values that fit one slot");

// The number of ring slots that the record takes: 1 or 2.
static inline uint32_t record_slots(const struct record *record)
{
    return record->used > RECORD_SLOT_VALUES * sizeof *record->values ? 2 : 1;
}

// Initialises a record of `kind` with all columns absent.
void record_init(struct record *record, enum record_kind kind, int64_t started_ns);

static inline void record_set_int(struct record *record, unsigned column, int64_t value)
{
    record->values[column].i = value;
    record->present |= UINT64_C(1) << column;
}

static inline void record_set_real(struct record *record, unsigned column, double value)
{
    record->values[column].r = value;
    record->present |= UINT64_C(1) << column;
}

static inline void record_set_name(struct record *record, unsigned column, uint32_t name)
{
    record->values[column].i = 0;
    record->values[column].name = name;
    record->present |= UINT64_C(1) << column;
}

static inline bool record_has(const struct record *record, unsigned column)
{
    return record->present >> column & 1;
}

// Sets a TEXT or BLOB column to a copy of `size` bytes; returns the bytes copied.  TEXT that
// does not fit is cut at a UTF-8 boundary; a BLOB that does not fit is not copied: returns 0.
size_t record_set_text(struct record *record, unsigned column, const char *text, size_t size);
size_t record_set_blob(struct record *record, unsigned column, const void *bytes, size_t size);

// The `*size` bytes of a present TEXT or BLOB column, not terminated, inside the record.
const char *record_get_text(const struct record *record, unsigned column, size_t *size);

// Bytes left for TEXT and BLOB columns.
size_t record_text_room(const struct record *record);

// Validates a record from outside (a file of another process) for the functions here: its kind
// and columns are known, and its texts are inside it.  Values are not validated.
bool record_is_sound(const struct record *record);

#endif
