// What memtables keep of records, large integers and absent values among them, is what
// the records had.
#include "tests/support/test.h"

#include "common/wire/codec.h"
#include "server/collector/rollup/rollup_memtable.h"

enum { ROUNDS = 40, BATCHES = 12, BATCH_MOST = 300, COUNT_MOST = BATCHES * BATCH_MOST };

// When all batches were received; about a quarter of the random times are plausible then.
#define RECEIVED_NS INT64_C(4000000000000000000)

static const unsigned columns[] = {INFERENCE_QUEUE_NS, INFERENCE_TTFT_NS, INFERENCE_DECODE_NS,
                                   INFERENCE_HOST_MEMORY, INFERENCE_DEVICE_MEMORY};

// Around the ends of what 32 bits hold, and of 64.
static int64_t random_value(uint64_t *seed, unsigned width)
{
    static const int64_t edges[] = {0,         1,         UINT32_MAX, (int64_t)UINT32_MAX + 1,
                                    -1,        INT64_MAX, INT64_MIN,  INT32_MAX,
                                    INT32_MIN, 2};
    const uint64_t random = test_random(seed);
    if (width < 64)
        return (int64_t)(random >> (64 - width));
    return random % 4 ? (int64_t)random : edges[random / 4 % COUNT_OF(edges)];
}

struct shape {
    unsigned width[COUNT_OF(columns)];  // bits of a column's values
    unsigned absent[COUNT_OF(columns)]; // one in so many; 0: none
};

// Narrow at first, at times, and wide later; the same of absence.
static struct shape random_shape(uint64_t *seed)
{
    static const unsigned widths[] = {8, 31, 32, 33, 64};
    struct shape shape = {{0}, {0}};
    for (size_t c = 0; c < COUNT_OF(columns); c++) {
        const bool maybe = record_kind_info(RECORD_KIND_INFERENCE)->columns[columns[c]].maybe;
        shape.width[c] = widths[test_random(seed) % COUNT_OF(widths)];
        shape.absent[c] = maybe ? (unsigned)(test_random(seed) % 4) : 0;
    }
    return shape;
}

static void make_record(struct record *record, const struct shape *shape, uint64_t *seed)
{
    record_init(record, RECORD_KIND_INFERENCE, (int64_t)(test_random(seed) >> 1));
    record_set_name(record, INFERENCE_MODEL, 1);
    record_set_name(record, INFERENCE_DEVICE, 2);
    for (size_t c = 0; c < COUNT_OF(columns); c++)
        if (shape->absent[c] == 0 || test_random(seed) % shape->absent[c] > 0)
            record_set_int(record, columns[c], random_value(seed, shape->width[c]));
}

static void check_sheet(const struct rollup_memtable *sheet, const struct record *records)
{
    for (size_t row = 0; row < sheet->count; row++) {
        const int64_t started_ns = records[row].started_ns;
        const bool is_suspect = started_ns < INT64_C(1577836800000000000) ||
                                started_ns > RECEIVED_NS + INT64_C(86400000000000);
        assert_int_equal(sheet->started_ns[row],
                         is_suspect ? INT64_C(1575158400000000000) : started_ns);
        for (size_t c = 0; c < COUNT_OF(columns); c++) {
            const struct rollup_column *column = &sheet->columns[columns[c]];
            const bool has = record_has(&records[row], columns[c]);
            assert_int_equal(column->has[row], has);
            if (has)
                assert_int_equal(column->integers[row], records[row].values[columns[c]].i);
        }
    }
}

TEST_CASE(sheets_have_what_came)
{
    static const int64_t names[] = {11, 12};
    static struct record records[COUNT_MOST];
    struct rollup_memtable sheet = {.count = 0};
    struct table_builder *builder = NULL;
    uint64_t seed = 20260101;
    rollup_memtable_init(&sheet, RECORD_KIND_INFERENCE);
    assert_int_equal(table_builder_new(&builder), STATUS_OK);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned batch = 0; batch < BATCHES; batch++) {
            const struct shape shape = random_shape(&seed);
            const size_t first = sheet.count, count = 1 + test_random(&seed) % BATCH_MOST;
            size_t tables = 0;
            table_builder_reset(builder);
            for (size_t i = first; i < first + count; i++) {
                make_record(&records[i], &shape, &seed);
                assert_int_equal(table_builder_add(builder, i + 1, &records[i]), STATUS_OK);
            }
            const struct rollup_batch from = {.table = table_builder_tables(builder, &tables),
                                              .first_id = (int64_t)first + 1,
                                              .received_ns = RECEIVED_NS,
                                              .names = names};
            assert_int_equal(rollup_memtable_add(&sheet, &from, 1), STATUS_OK);
        }
        check_sheet(&sheet, records);
        rollup_memtable_clear(&sheet, round % 3 > 0);
    }
    table_builder_free(builder);
    rollup_memtable_deinit(&sheet);
}

TEST_MAIN(sheets_have_what_came)
