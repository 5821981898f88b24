#include "tests/support/test.h"

#include "common/core/record/record.h"

TEST_CASE(test_table_is_sound)
{
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)k);
        assert_int_equal(record_kind_find(info->name), k);
        assert_int_equal(record_kind_find(info->plural), k);
        assert_in_range(info->column_count, 1, RECORD_VALUES_MAX);
        for (unsigned c = 0; c < info->column_count; c++) {
            const struct record_column *column = &info->columns[c];
            // No name twice in a kind, nor one of the common columns.
            assert_int_equal(record_column_find((enum record_kind)k, column->name), c);
            assert_string_not_equal(column->name, "started_ns");
            assert_string_not_equal(column->name, "run");
            assert_true(strlen(column->meaning) > 0);
            // A unit of time or size stands at the end of the name, and only there.
            const size_t size = strlen(column->name);
            const bool is_ns = size > 3 && strcmp(column->name + size - 3, "_ns") == 0;
            const bool timed = column->unit == UNIT_DURATION || column->unit == UNIT_TIME;
            assert_int_equal(is_ns, timed);
            if (column->type != COLUMN_INT && column->type != COLUMN_REAL)
                assert_int_equal(column->unit, UNIT_NONE);
        }
    }
    assert_int_equal(record_kind_find("nothing"), RECORD_KIND_COUNT);
    assert_int_equal(record_column_find(RECORD_KIND_LOAD, "nothing"), -1);
}

TEST_CASE(test_derived)
{
    unsigned count = 0;
    const struct record_derived *derived = record_derived(&count);
    assert_true(count > 5);
    for (unsigned i = 0; i < count; i++) {
        // Derived columns do not shadow stored ones.
        assert_int_equal(record_column_find(derived[i].kind, derived[i].name), -1);
        assert_true(strlen(derived[i].numerator) > 0 && strlen(derived[i].denominator) > 0);
    }
}

TEST_CASE(test_enumerations)
{
    static const struct {
        enum column_type type;
        int64_t number;
        const char *text;
    } cases[] = {
        {COLUMN_STATUS, 0, "ok"},        {COLUMN_STATUS, 1, "error"},
        {COLUMN_STATUS, 2, "cancelled"}, {COLUMN_STATUS, 3, NULL},
        {COLUMN_STATUS, -1, NULL},       {COLUMN_FINISH, 0, "stop"},
        {COLUMN_FINISH, 1, "length"},    {COLUMN_FINISH, 3, "error"},
        {COLUMN_FINISH, 4, NULL},        {COLUMN_RUN_END, 0, "open"},
        {COLUMN_RUN_END, 3, "silent"},   {COLUMN_RUN_END, INT64_MAX, NULL},
        {COLUMN_SYNC, 1, "periodic"},    {COLUMN_SYNC, 2, NULL},
        {COLUMN_INT, 0, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *text = column_enum_text(cases[i].type, cases[i].number);
        if (cases[i].text)
            assert_string_equal(text, cases[i].text);
        else
            assert_null(text);
    }
}

TEST_CASE(test_values)
{
    struct record record;
    memset(&record, 0xff, sizeof record);
    record_init(&record, RECORD_KIND_LOAD, 77);
    assert_int_equal(record.present, 0);
    assert_int_equal(record.started_ns, 77);
    record_set_name(&record, LOAD_MODEL, 5);
    record_set_int(&record, LOAD_DURATION_NS, -3);
    record_set_real(&record, LOAD_PAGE_CACHE_RATIO, 0.25);
    assert_true(record_has(&record, LOAD_MODEL));
    assert_false(record_has(&record, LOAD_DEVICE));
    assert_int_equal(record.values[LOAD_MODEL].name, 5);
    assert_int_equal(record.values[LOAD_DURATION_NS].i, -3);
    assert_true(record.values[LOAD_PAGE_CACHE_RATIO].r == 0.25);
    assert_int_equal(record.values[LOAD_DEVICE].i, 0);

    const char *why = "cannot open: no such file";
    assert_int_equal(record_set_text(&record, LOAD_ERROR, why, strlen(why)), strlen(why));
    size_t size = 0;
    const char *text = record_get_text(&record, LOAD_ERROR, &size);
    assert_int_equal(size, strlen(why));
    assert_memory_equal(text, why, size);
}

// What events are called where people read, with or without those that are told otherwise.
TEST_CASE(test_events_in_words)
{
    static const char *const said[] = {"throttling", "ecc", NULL};
    static const struct {
        const char *events;
        const char *const *said;
        const char *text;
    } cases[] = {
        {"", NULL, "x"},
        {"pcie_downgrade", NULL, "x, PCIe downgrade"},
        {"throttling (2 devices), ecc_uncorrected, xid", NULL,
         "x, throttling (2 devices), ECC uncorrected, XID"},
        {"throttling (2 devices), ecc_uncorrected,xid", said, "x, ECC uncorrected, XID"},
        {"throttling", said, "x"},
        {"eccentric_thing, pcie", NULL, "x, eccentric thing, PCIe"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[80] = "x";
        record_event_words(text, sizeof text, cases[i].events, cases[i].said);
        assert_string_equal(text, cases[i].text);
    }
    assert_string_equal(record_kind_words("inference"), "request");
    assert_string_equal(record_kind_words("load"), "load");
}

TEST_CASE(test_text_is_cut)
{
    struct record record;
    record_init(&record, RECORD_KIND_OPERATION, 0);
    const size_t room = record_text_room(&record);
    assert_int_equal(room, (RECORD_VALUES_MAX - OPERATION_COLUMNS) * 8);

    // A character of three bytes over the edge goes as a whole.
    char text[RECORD_SIZE];
    memset(text, 'x', sizeof text);
    memcpy(text + room - 1, "\xe2\x82\xac", 3);
    assert_int_equal(record_set_text(&record, OPERATION_EXTRA, text, room + 2), room - 1);
    assert_int_equal(record_text_room(&record), 1);

    record_init(&record, RECORD_KIND_ITL, 0);
    unsigned char blob[RECORD_SIZE] = {0};
    const size_t blob_room = record_text_room(&record);
    assert_int_equal(record_set_blob(&record, ITL_SKETCH, blob, blob_room + 1), 0);
    assert_false(record_has(&record, ITL_SKETCH));
    assert_int_equal(record_set_blob(&record, ITL_SKETCH, blob, blob_room), blob_room);
    assert_int_equal(record_text_room(&record), 0);
}

// What another process may have left in a file.
TEST_CASE(test_soundness)
{
    struct record good;
    record_init(&good, RECORD_KIND_OPERATION, 0);
    record_set_name(&good, OPERATION_OPERATION, 1);
    assert_int_equal(record_set_text(&good, OPERATION_EXTRA, "{}", 2), 2);
    assert_true(record_is_sound(&good));
    // An older version knew fewer columns.
    struct record older = good;
    older.used = 8;
    older.present = 1;
    assert_true(record_is_sound(&older));

    struct record cases[7];
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        cases[i] = good;
    cases[0].kind = RECORD_KIND_COUNT;
    cases[1].used = sizeof good.bytes + 1;
    cases[2].present |= UINT64_C(1) << OPERATION_COLUMNS;
    cases[3].present |= UINT64_C(1) << 63;
    cases[4].used = 8; // of which two columns are said to be there
    cases[5].values[OPERATION_EXTRA].text.offset = (uint16_t)(good.used - 1);
    cases[6].values[OPERATION_EXTRA].text.size = UINT16_MAX;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_false(record_is_sound(&cases[i]));
}

TEST_MAIN(test_table_is_sound, test_derived, test_enumerations, test_values, test_events_in_words,
          test_text_is_cut, test_soundness)
