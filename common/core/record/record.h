// Record: one row of telemetry as a fixed-size C struct.  A record's kind (inference, model load,
// sample of a device, ...) names the SQL table of the row.  The enums of kinds and columns, and the
// functions that describe them, are generated from the schema in record_table.h.  The library, the
// collector and all clients use this header.  No I/O, no locks.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/unit.h"
#include "common/core/record/record_table.h"

enum record_kind {
#define RECORD_KIND_ENUM(kind, table, plural, text) RECORD_KIND_##kind,
    RECORD_KINDS(RECORD_KIND_ENUM)
#undef RECORD_KIND_ENUM
        RECORD_KIND_COUNT
};

// Column positions, one enum per kind: INFERENCE_TTFT_NS is the position, from 0, of ttft_ns in an
// inference; INFERENCE_COLUMNS is the count of its columns.
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
enum host_sample_column { RECORD_HOST_SAMPLE(RECORD_COLUMN_ENUM) HOST_SAMPLE_COLUMNS };
enum device_process_column { RECORD_DEVICE_PROCESS(RECORD_COLUMN_ENUM) DEVICE_PROCESS_COLUMNS };
enum event_column { RECORD_EVENT(RECORD_COLUMN_ENUM) EVENT_COLUMNS };
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
    bool maybe; // may be absent (presence MAYBE in record_table.h)
};

// A derived metric: numerator / denominator, computed when read (RECORD_DERIVED in record_table.h).
struct record_derived {
    const char *name;
    const char *meaning;
    const char *numerator; // expression over the columns
    const char *denominator;
    enum record_kind kind;
    enum unit unit;
};

struct record_kind_info {
    const char *name;   // also the table's name
    const char *plural; // in queries and on the command line
    const char *meaning;
    const struct record_column *columns;
    unsigned column_count;
};

// The metadata of a kind; static.  `kind` must be below RECORD_KIND_COUNT.
const struct record_kind_info *record_kind_info(enum record_kind kind);

// The kind with this name, or plural; RECORD_KIND_COUNT if there is none.
enum record_kind record_kind_find(const char *name);

// The name of a kind for people, who call an inference a request.
const char *record_kind_words(const char *name);

// Appends the names of events for people to `text` (`size` bytes): "pcie_downgrade, xid (2
// devices)" is "PCIe downgrade, XID (2 devices)".  Those in `said`, ended by NULL, are left out;
// NULL: none.
void record_event_words(char *text, size_t size, const char *events, const char *const *said);

// The position of the column `name` in `kind`; -1 if there is none.
int record_column_find(enum record_kind kind, const char *name);

// The derived metrics of all kinds, `*count` of them; static.
const struct record_derived *record_derived(unsigned *count);

// column_type_is_enum: true if the type is an enumeration.  column_enum_text: the text of the value
// `number` of the enumeration `type`; NULL if the enumeration has no such value.
bool column_type_is_enum(enum column_type type);
const char *column_enum_text(enum column_type type, int64_t number);

// How a run ended, by its columns `end` and ended_ns.  A silent run of which the end is known,
// since its connection closed, is down: its process ended without closing.  NULL: `end` is unknown.
#define RECORD_RUN_DOWN "down"
const char *record_run_end_text(int64_t end, bool has_ended);

// The type's name for people: "integer", "name", "enumeration"; static.
const char *column_type_name(enum column_type type);

// ---- One record -----------------------------------------------------------

enum {
    RECORD_SIZE = 512,
    RECORD_SLOT_SIZE = 256,  // slot of a ring buffer of records (ring.h); a record takes 1 or 2
    RECORD_SLOT_VALUES = 29, // 8-byte values in one slot, after the header
    RECORD_VALUES_MAX = 61,  // in two slots
};

// One record.  `values` are in the kind's column order; an absent column has value 0 and a clear
// bit in `present`.  INT and enumerations are in `i`, REAL in `r`, NAME in `name` (the id, from 1,
// of an interned string of the run).  The bytes of a TEXT or BLOB column follow the last column, at
// `text.offset` in `bytes`.  The members before `values` are the header.  Only the header and the
// first `used` bytes of `values` are defined: a reader of a ring must read no others.
struct record {
    uint16_t kind;      // enum record_kind
    uint16_t used;      // bytes of `values` in use, text included
    uint32_t reserved;  // 0
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

// Set a column, which must be of the record's kind and of that type: record_set_int sets INT and
// enumerations.
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

// Set a TEXT or BLOB column, at most once, to a copy of `size` bytes; return how many were copied.
// A TEXT that does not fit is cut at a UTF-8 boundary.  A BLOB that does not fit is not copied: the
// result is 0 and the column stays absent.
size_t record_set_text(struct record *record, unsigned column, const char *text, size_t size);
size_t record_set_blob(struct record *record, unsigned column, const void *bytes, size_t size);

// The bytes of a present TEXT or BLOB column, `*size` of them, without a NUL; a pointer into the
// record.
const char *record_get_text(const struct record *record, unsigned column, size_t *size);

// Bytes left for TEXT and BLOB columns.
size_t record_text_room(const struct record *record);

// True if the functions above may be called on a record that another process wrote: its kind and
// columns are known, and its texts are inside it.  Does not validate values.
bool record_is_sound(const struct record *record);
