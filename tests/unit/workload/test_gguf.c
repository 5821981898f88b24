// The reader and the writer of GGUF: what one writes the other reads; damage of
// every kind is refused, with words, without a crash and without memory.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/device/tensor_types.h"
#include "server/workload/llm/gguf.h"
#include "server/workload/llm/gguf_writer.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "tests/unit/workload/model_files.h"

static enum status read_bytes(const void *data, size_t size, struct gguf **gguf, struct error *err)
{
    struct byte_source source;
    byte_source_from_memory(&source, data, size);
    enum status status = gguf_read(gguf, &source, NULL, err);
    byte_source_close(&source);
    return status;
}

static const char *write_example(void)
{
    static const char *const texts[] = {"", "one", "three words here"};
    static const float floats[] = {1.5F, -2.0F};
    static const int32_t ints[] = {-7};
    static const float row[5] = {1, 2, 3, 4, 5};
    static const uint16_t halves[6] = {0x3c00, 1, 2, 3, 4, 5};
    struct gguf_writer *writer = NULL;
    struct error err = {0};
    const char *path = model_files_path("example.gguf");
    assert_int_equal(gguf_writer_open(&writer, path, &err), STATUS_OK);
    gguf_writer_text(writer, "a.text", "hello");
    gguf_writer_uint(writer, "a.number", 4000000000U);
    gguf_writer_float(writer, "a.float", 0.25F);
    gguf_writer_bool(writer, "a.bool", true);
    gguf_writer_texts(writer, "a.texts", texts, 3);
    gguf_writer_array(writer, "a.floats", GGUF_FLOAT32, floats, 2);
    gguf_writer_array(writer, "a.ints", GGUF_INT32, ints, 1);
    gguf_writer_array(writer, "a.nothing", GGUF_INT32, ints, 0);
    gguf_writer_tensor(writer, "row", GGUF_TENSOR_F32, 1, 5);
    gguf_writer_tensor(writer, "matrix", GGUF_TENSOR_F16, 2, 3);
    gguf_writer_align(writer);
    gguf_writer_data(writer, row, 8); // in parts
    gguf_writer_data(writer, row + 2, 12);
    gguf_writer_align(writer);
    gguf_writer_data(writer, halves, sizeof halves);
    expect_ok(gguf_writer_close(writer, STATUS_OK, &err), &err);
    return path;
}

TEST_CASE(round_trip)
{
    size_t size;
    unsigned char *data = read_file(write_example(), &size);
    struct gguf *gguf = NULL;
    struct error err = {0};
    expect_ok(read_bytes(data, size, &gguf, &err), &err);

    struct gguf_text text;
    assert_int_equal(gguf_get_text(gguf, "a.text", &text, &err), STATUS_OK);
    assert_int_equal(text.size, 5);
    assert_memory_equal(text.data, "hello", 5);
    uint64_t number;
    assert_int_equal(gguf_get_uint(gguf, "a.number", 0, UINT32_MAX, &number, &err), STATUS_OK);
    assert_int_equal(number, 4000000000U);
    double real;
    assert_int_equal(gguf_get_float(gguf, "a.float", 0, 1, &real, &err), STATUS_OK);
    assert_true(real == 0.25);
    bool flag = false;
    assert_int_equal(gguf_get_bool(gguf, "a.bool", &flag, &err), STATUS_OK);
    assert_true(flag);

    struct gguf_array array;
    assert_int_equal(gguf_get_array(gguf, "a.texts", GGUF_STRING, &array, &err), STATUS_OK);
    assert_int_equal(array.count, 3);
    assert_int_equal(gguf_array_next_text(&array).size, 0);
    assert_int_equal(gguf_array_next_text(&array).size, 3);
    text = gguf_array_next_text(&array);
    assert_memory_equal(text.data, "three words here", text.size);
    assert_ptr_equal(array.data, array.end);
    assert_int_equal(gguf_get_array(gguf, "a.floats", GGUF_FLOAT32, &array, &err), STATUS_OK);
    assert_true(gguf_array_float(&array, 1) == -2.0F);
    assert_int_equal(gguf_get_array(gguf, "a.ints", GGUF_INT32, &array, &err), STATUS_OK);
    assert_int_equal(gguf_array_int(&array, 0), -7);
    assert_int_equal(gguf_get_array(gguf, "a.nothing", GGUF_INT32, &array, &err), STATUS_OK);
    assert_int_equal(array.count, 0);

    assert_int_equal(gguf_tensor_count(gguf), 2);
    const struct gguf_tensor *row = gguf_find_tensor(gguf, "row");
    const struct gguf_tensor *matrix = gguf_find_tensor(gguf, "matrix");
    assert_ptr_equal(gguf_tensor_at(gguf, 1), row);
    assert_int_equal(row->dimensions, 1);
    assert_int_equal(row->shape[0], 5);
    assert_int_equal(row->shape[1], 1);
    assert_int_equal(row->bytes, 20);
    assert_int_equal(matrix->shape[0], 3);
    assert_int_equal(matrix->shape[1], 2);
    assert_int_equal(matrix->offset % 32, 0);
    assert_string_equal(matrix->type->name, "F16");
    float fifth;
    memcpy(&fifth, data + row->offset + 16, sizeof fifth);
    assert_true(fifth == 5.0F);
    assert_memory_equal(data + matrix->offset, "\x00\x3c\x01\x00", 4);
    assert_null(gguf_find_tensor(gguf, "ro"));
    assert_null(gguf_find_tensor(gguf, "rows"));
    gguf_free(gguf);
    gguf_free(NULL);
    free(data);
}

TEST_CASE(getters_refuse)
{
    static const struct {
        char getter; // u: uint, f: float, b: bool, t: text, a: array
        const char *key;
        double minimum, maximum;      // of a number
        enum gguf_value_type element; // of an array
        const char *says;             // NULL: the key is missing
    } cases[] = {
        {'u', "no.such", 0, 1, 0, NULL},
        {'u', "a.text", 0, 1, 0, "key 'a.text' should be an integer, is string"},
        {'u', "a.number", 0, 10, 0, "outside 0..10"},
        {'f', "a.number", 0, 1, 0, "should be a float"},
        {'f', "a.float", 0.5, 1, 0, "outside 0.5..1"},
        {'f', "no.such", 0, 1, 0, NULL},
        {'b', "a.number", 0, 0, 0, "should be a bool"},
        {'b', "no.such", 0, 0, 0, NULL},
        {'t', "a.texts", 0, 0, 0, "key 'a.texts' should be a string, is an array of string"},
        {'t', "no.such", 0, 0, 0, NULL},
        {'a', "a.floats", 0, 0, GGUF_INT32, "should be an array of int32, is an array of float32"},
        {'a', "a.text", 0, 0, GGUF_STRING, "should be an array of string, is string"},
        {'a', "no.such", 0, 0, GGUF_INT32, NULL},
    };
    size_t size;
    unsigned char *data = read_file(write_example(), &size);
    struct gguf *gguf = NULL;
    assert_int_equal(read_bytes(data, size, &gguf, NULL), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *key = cases[i].key;
        const double low = cases[i].minimum, high = cases[i].maximum;
        struct error err = {0};
        uint64_t number;
        double real;
        bool flag;
        struct gguf_text text;
        struct gguf_array array;
        const enum status status =
            cases[i].getter == 'u'
                ? gguf_get_uint(gguf, key, (uint64_t)low, (uint64_t)high, &number, &err)
            : cases[i].getter == 'f' ? gguf_get_float(gguf, key, low, high, &real, &err)
            : cases[i].getter == 'b' ? gguf_get_bool(gguf, key, &flag, &err)
            : cases[i].getter == 't' ? gguf_get_text(gguf, key, &text, &err)
                                     : gguf_get_array(gguf, key, cases[i].element, &array, &err);
        assert_int_equal(status, cases[i].says ? STATUS_CORRUPT : STATUS_NOT_FOUND);
        if (!strstr(err.text, cases[i].says ? cases[i].says : "key 'no.such' is missing"))
            fail_msg("%zu: %s", i, err.text);
    }
    gguf_free(gguf);
    free(data);
}

// A file of one key "k".
static size_t one_key(unsigned char *out, uint32_t type, const void *value, size_t value_size)
{
    static const unsigned char start[] = "GGUF\x03\0\0\0"
                                         "\0\0\0\0\0\0\0\0"
                                         "\x01\0\0\0\0\0\0\0"
                                         "\x01\0\0\0\0\0\0\0k";
    size_t size = sizeof start - 1;
    memcpy(out, start, size);
    memcpy(out + size, &type, sizeof type);
    memcpy(out + size + sizeof type, value, value_size);
    return size + sizeof type + value_size;
}

TEST_CASE(integers_of_every_width)
{
    static const struct {
        uint32_t type;
        size_t size;
        int64_t value;
        bool taken; // within 0..INT64_MAX
    } cases[] = {
        {GGUF_UINT8, 1, 0xff, true},       {GGUF_INT8, 1, 0x7f, true},
        {GGUF_INT8, 1, -1, false},         {GGUF_UINT16, 2, 0xffff, true},
        {GGUF_INT16, 2, -2, false},        {GGUF_UINT32, 4, 0xffffffff, true},
        {GGUF_INT32, 4, 0x7fffffff, true}, {GGUF_INT32, 4, -1, false},
        {GGUF_UINT64, 8, INT64_MAX, true}, {GGUF_UINT64, 8, -1, false},
        {GGUF_INT64, 8, 5, true},          {GGUF_INT64, 8, INT64_MIN, false},
        {GGUF_FLOAT32, 4, 1, false},       {GGUF_FLOAT64, 8, 1, false},
        {GGUF_BOOL, 1, 1, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        unsigned char data[128];
        size_t size = one_key(data, cases[i].type, &cases[i].value, cases[i].size);
        struct gguf *gguf = NULL;
        assert_int_equal(read_bytes(data, size, &gguf, NULL), STATUS_OK);
        uint64_t value = 0;
        enum status status = gguf_get_uint(gguf, "k", 0, INT64_MAX, &value, NULL);
        assert_int_equal(status, cases[i].taken ? STATUS_OK : STATUS_CORRUPT);
        if (cases[i].taken)
            assert_int_equal(value, cases[i].value);
        gguf_free(gguf);
    }
}

TEST_CASE(floats_are_finite_and_bools_are_bools)
{
    static const struct {
        enum gguf_value_type type;
        uint64_t bits;
        size_t size;
        enum status status;
    } cases[] = {
        {GGUF_FLOAT32, 0x7fc00000, 4, STATUS_CORRUPT},              // not a number
        {GGUF_FLOAT32, 0x7f800000, 4, STATUS_CORRUPT},              // infinite
        {GGUF_FLOAT64, UINT64_C(0x3fe0000000000000), 8, STATUS_OK}, // 0.5
        {GGUF_BOOL, 2, 1, STATUS_CORRUPT},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        unsigned char data[128];
        struct gguf *gguf = NULL;
        double real = 0.5;
        bool flag;
        const size_t size = one_key(data, cases[i].type, &cases[i].bits, cases[i].size);
        assert_int_equal(read_bytes(data, size, &gguf, NULL), STATUS_OK);
        assert_int_equal(cases[i].type == GGUF_BOOL
                             ? gguf_get_bool(gguf, "k", &flag, NULL)
                             : gguf_get_float(gguf, "k", -1e300, 1e300, &real, NULL),
                         cases[i].status);
        assert_true(real == 0.5);
        gguf_free(gguf);
    }
}

// ---- Refusals -------------------------------------------------------------

// Puts `value` at some place of a small model's header and reads it.
struct patch {
    const char *name;  // of what is wrong, for the message of a failing test
    const char *where; // "" is the file's beginning; a key; or a tensor, with '/' before
    size_t offset;     // from there
    uint64_t value;    // little-endian
    size_t value_size;
    enum status status;
    const char *says;
};

static const struct patch patches[] = {
    {"magic", "", 0, 'g', 1, STATUS_CORRUPT, "not a GGUF file"},
    {"version 0", "", 4, 0, 4, STATUS_UNSUPPORTED, "version 0"},
    {"version 1", "", 4, 1, 4, STATUS_UNSUPPORTED, "version 1"},
    {"version 4", "", 4, 4, 4, STATUS_UNSUPPORTED, "version 4"},
    {"big-endian", "", 4, 0x03000000, 4, STATUS_UNSUPPORTED, "big-endian"},
    {"absurd tensors", "", 8, UINT64_MAX, 8, STATUS_CORRUPT, "more tensors"},
    {"many tensors", "", 8, 100000, 8, STATUS_CORRUPT, "more tensors"},
    {"one tensor more", "", 8, 13, 8, STATUS_CORRUPT, NULL},
    {"absurd keys", "", 16, UINT64_MAX, 8, STATUS_CORRUPT, "more keys"},
    {"many keys", "", 16, (uint64_t)1 << 40, 8, STATUS_CORRUPT, "more keys"},
    {"no name", "", 24, 0, 8, STATUS_CORRUPT, "name"},
    {"long name", "", 24, 65536, 8, STATUS_CORRUPT, "name"},
    {"absurd name", "", 24, UINT64_MAX, 8, STATUS_CORRUPT, "name"},
    {"type of a value", "general.name", 0, 13, 0, STATUS_CORRUPT, NULL},
    {"length of a text", "general.name", 0, (uint64_t)1 << 50, 8, STATUS_CORRUPT, "truncated"},
    {"greatest length", "general.name", 0, UINT64_MAX, 8, STATUS_CORRUPT, "truncated"},
    {"type of an array", "tokenizer.ggml.scores", 0, 99, 4, STATUS_CORRUPT, "unknown type"},
    {"array of arrays", "tokenizer.ggml.scores", 0, 9, 4, STATUS_CORRUPT, "unknown type"},
    {"array's count", "tokenizer.ggml.scores", 4, (uint64_t)1 << 62, 8, STATUS_CORRUPT, "array"},
    {"texts' count", "tokenizer.ggml.tokens", 4, (uint64_t)1 << 61, 8, STATUS_CORRUPT, "array"},
    {"no dimensions", "/output_norm.weight", 0, 0, 4, STATUS_CORRUPT, "dimensions"},
    {"5 dimensions", "/output_norm.weight", 0, 5, 4, STATUS_CORRUPT, "dimensions"},
    {"empty shape", "/output_norm.weight", 4, 0, 8, STATUS_CORRUPT, "shape"},
    {"huge shape", "/token_embd.weight", 12, UINT64_MAX, 8, STATUS_CORRUPT, "shape"},
    {"huge size", "/token_embd.weight", 12, (uint64_t)1 << 60, 8, STATUS_CORRUPT, "size"},
    {"large shape", "/token_embd.weight", 12, (uint64_t)1 << 40, 8, STATUS_CORRUPT, "outside"},
    {"tensor type", "/output_norm.weight", 12, 4, 4, STATUS_UNSUPPORTED,
     "'output_norm.weight' is of the unknown type 4"},
    {"another type", "/output_norm.weight", 12, 999, 4, STATUS_UNSUPPORTED, "unknown type 999"},
    {"partial block", "/output_norm.weight", 12, 8, 4, STATUS_CORRUPT, "blocks"},
    {"misaligned", "/output_norm.weight", 16, 4, 8, STATUS_CORRUPT, "not aligned"},
    {"overlap", "/output_norm.weight", 16, 0, 8, STATUS_CORRUPT, "overlaps"},
    {"outside", "/output_norm.weight", 16, (uint64_t)1 << 40, 8, STATUS_CORRUPT, "outside"},
    {"far outside", "/output_norm.weight", 16, UINT64_MAX - 31, 8, STATUS_CORRUPT, "outside"},
};

TEST_CASE(refusals)
{
    size_t size;
    unsigned char *data = model_files_make(&model_files_smallest, false, &size);
    unsigned char *copy = malloc(size);
    for (size_t i = 0; i < COUNT_OF(patches); i++) {
        const struct patch *p = &patches[i];
        memcpy(copy, data, size);
        size_t at = p->offset;
        if (p->where[0] == '/')
            at += model_files_find_tensor(data, size, p->where + 1);
        else if (p->where[0])
            at += model_files_find_key(data, size, p->where);
        if (p->value_size)
            memcpy(copy + at, &p->value, p->value_size);
        else
            memcpy(copy + at - 4, &p->value, 4); // the type before the value
        struct gguf *gguf = NULL;
        struct error err = {0};
        enum status status = read_bytes(copy, size, &gguf, &err);
        if (status != p->status || (p->says && !strstr(err.text, p->says)))
            fail_msg("%s: status %d, %s", p->name, (int)status, err.text);
        assert_null(gguf);
    }
    free(copy);
    free(data);
}

// Names that appear twice, of tensors and of keys.
TEST_CASE(duplicates)
{
    static const char *const cases[][3] = {{"blk.0.attn_k.weight", "blk.0.attn_q.weight",
                                            "tensor 'blk.0.attn_q.weight' appears twice"},
                                           {"tokenizer.ggml.bos_token_id",
                                            "tokenizer.ggml.eos_token_id",
                                            "key 'tokenizer.ggml.eos_token_id' appears twice"}};
    size_t size;
    unsigned char *data = model_files_make(&model_files_smallest, false, &size);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gguf *gguf = NULL;
        struct error err = {0};
        const size_t length = strlen(cases[i][0]);
        unsigned char *name = data + model_files_find_tensor(data, size, cases[i][0]) - length;
        memcpy(name, cases[i][1], length);
        assert_int_equal(read_bytes(data, size, &gguf, &err), STATUS_CORRUPT);
        assert_non_null(strstr(err.text, cases[i][2]));
        memcpy(name, cases[i][0], length);
        assert_int_equal(read_bytes(data, size, &gguf, &err), STATUS_OK);
        gguf_free(gguf);
    }
    free(data);
}

TEST_CASE(alignment)
{
    static const struct {
        uint32_t value;
        enum status status;
    } cases[] = {{0, STATUS_CORRUPT}, {1, STATUS_OK},       {24, STATUS_CORRUPT},
                 {64, STATUS_OK},     {1 << 20, STATUS_OK}, {1 << 21, STATUS_CORRUPT}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gguf_writer *writer = NULL;
        const char *path = model_files_path("aligned.gguf");
        assert_int_equal(gguf_writer_open(&writer, path, NULL), STATUS_OK);
        gguf_writer_uint(writer, "general.alignment", cases[i].value);
        assert_int_equal(gguf_writer_close(writer, STATUS_OK, NULL), STATUS_OK);
        size_t size;
        unsigned char *data = read_file(path, &size);
        struct gguf *gguf = NULL;
        assert_int_equal(read_bytes(data, size, &gguf, NULL), cases[i].status);
        gguf_free(gguf);
        free(data);
    }
}

// Cut anywhere, it is refused: the end of the last tensor's data is the end of the
// file but for padding.
TEST_CASE(truncated_at_every_byte)
{
    size_t size;
    unsigned char *data = model_files_make(&model_files_smallest, true, &size);
    struct gguf *gguf = NULL;
    assert_int_equal(read_bytes(data, size, &gguf, NULL), STATUS_OK);
    const struct gguf_tensor *last = gguf_find_tensor(gguf, "blk.0.ffn_down.weight");
    size_t end = (size_t)(last->offset + last->bytes);
    assert_in_range(end, size - 31, size);
    gguf_free(gguf);
    for (size_t cut = 0; cut < end; cut++) {
        unsigned char *exact = malloc(cut + 1); // so that reading beyond is noticed
        memcpy(exact, data, cut);
        struct error err = {0};
        gguf = NULL;
        enum status status = read_bytes(exact, cut, &gguf, &err);
        if (status != STATUS_CORRUPT || err.text[0] == '\0')
            fail_msg("cut at %zu: status %d, %s", cut, (int)status, err.text);
        assert_null(gguf);
        free(exact);
    }
    free(data);
}

// Bytes of the header replaced at random: an answer every time, of either kind.
TEST_CASE(random_damage)
{
    size_t size;
    unsigned char *data = model_files_make(&model_files_smallest, false, &size);
    unsigned char *copy = malloc(size);
    uint64_t seed = 12345;
    unsigned int refused = 0;
    for (int round = 0; round < 4000; round++) {
        memcpy(copy, data, size);
        size_t changes = 1 + test_random(&seed) % 4;
        for (size_t i = 0; i < changes; i++)
            copy[test_random(&seed) % size] = (unsigned char)test_random(&seed);
        // Half of the time near the beginning, where the counts are.
        if (round % 2)
            copy[test_random(&seed) % 64] = (unsigned char)test_random(&seed);
        struct gguf *gguf = NULL;
        struct error err = {0};
        if (read_bytes(copy, size, &gguf, &err) != STATUS_OK) {
            assert_true(err.text[0] != '\0');
            refused++;
        }
        gguf_free(gguf);
    }
    assert_true(refused > 1000);
    free(copy);
    free(data);
}

TEST_CASE(files_that_are_none)
{
    struct byte_source source;
    struct error err = {0};
    assert_int_equal(byte_source_open(&source, model_files_path("none"), &err), STATUS_NOT_FOUND);
    assert_int_equal(byte_source_open(&source, model_files_path(""), &err), STATUS_IO);
    assert_non_null(strstr(err.text, "not a regular file"));
    const char *fifo = model_files_path("fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(byte_source_open(&source, fifo, &err), STATUS_IO); // and does not wait
    const char *empty = model_files_write("empty", "", 0);
    struct gguf *gguf = NULL;
    assert_int_equal(byte_source_open(&source, empty, &err), STATUS_OK);
    assert_int_equal(gguf_read(&gguf, &source, NULL, &err), STATUS_CORRUPT);
    assert_true(byte_source_cached_ratio(&source) < 0.0);
    byte_source_close(&source);
}

// A file that becomes shorter while it is read gives an error, not a signal.
TEST_CASE(shrinking_file)
{
    size_t size;
    unsigned char *data = model_files_make(&model_files_smallest, false, &size);
    const char *path = model_files_write("shrinking.gguf", data, size);
    struct byte_source source;
    struct error err = {0};
    assert_int_equal(byte_source_open(&source, path, &err), STATUS_OK);
    double cached = byte_source_cached_ratio(&source);
    assert_true(cached < 0.0 || cached == 1.0); // just written
    assert_int_equal(truncate(path, 100), 0);
    struct gguf *gguf = NULL;
    assert_int_equal(gguf_read(&gguf, &source, NULL, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "ends at byte 100"));
    char byte;
    assert_int_equal(byte_source_read(&source, 99, &byte, 1, &err), STATUS_OK);
    assert_int_equal(byte_source_read(&source, 100, &byte, 1, &err), STATUS_CORRUPT);
    byte_source_close(&source);
    free(data);
}

static unsigned int polls, polls_allowed;

static bool stop_later(void)
{
    return ++polls > polls_allowed;
}

// A large header is read in pieces; before each of them the reading can be cancelled.
TEST_CASE(reading_can_be_cancelled)
{
    enum { SIZE = 3 << 20 };
    int32_t *zeroes = calloc(SIZE / 4, 4);
    struct gguf_writer *writer = NULL;
    const char *path = model_files_path("large.gguf");
    assert_int_equal(gguf_writer_open(&writer, path, NULL), STATUS_OK);
    gguf_writer_array(writer, "large", GGUF_INT32, zeroes, SIZE / 4);
    assert_int_equal(gguf_writer_close(writer, STATUS_OK, NULL), STATUS_OK);
    free(zeroes);
    struct byte_source source;
    struct gguf *gguf = NULL;
    assert_int_equal(byte_source_open(&source, path, NULL), STATUS_OK);
    enum status status = STATUS_CANCELLED;
    for (polls_allowed = 0; status == STATUS_CANCELLED; polls_allowed++) {
        struct error err = {0};
        polls = 0;
        status = gguf_read(&gguf, &source, stop_later, &err);
        if (status == STATUS_CANCELLED)
            assert_string_equal(err.text, "stopped while reading the header");
    }
    assert_int_equal(status, STATUS_OK);
    assert_in_range(polls, SIZE >> 20, 100);
    gguf_free(gguf);
    byte_source_close(&source);
}

static double cached_ratio_of(const char *path)
{
    struct byte_source source;
    assert_int_equal(byte_source_open(&source, path, NULL), STATUS_OK);
    double ratio = byte_source_cached_ratio(&source);
    byte_source_close(&source);
    return ratio;
}

// A file just written is in the page cache; one that was written back and let go is
// not, where the file system has a page cache of that kind.
TEST_CASE(warm_and_cold_files)
{
    enum { SIZE = 4 << 20 };
    char *data = calloc(1, SIZE);
    const char *path = model_files_write("cached", data, SIZE);
    free(data);
    assert_true(cached_ratio_of(path) > 0.9);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    double cold = cached_ratio_of(path);
    (void)close(fd);
    if (cold > 0.5) {
        print_message("the kernel keeps the file in memory: skipped\n");
        skip();
    }
    assert_true(cold >= 0.0 && cold < 0.1);
    // Of a large file only some parts are looked at, the last one included.
    assert_int_equal(truncate(path, (INT64_C(1) << 40) + 1), 0);
    cold = cached_ratio_of(path);
    assert_true(cold >= 0.0 && cold < 0.1);
}

// Where the kernel does not tell (to one who neither owns nor may write the file),
// nothing is said.
TEST_CASE(a_file_of_others)
{
    const uid_t nobody = 65534;
    struct byte_source source;
    if (geteuid() != 0) {
        print_message("only root can be somebody else: skipped\n");
        skip();
    }
    const char *path = model_files_write("others", "some bytes", 10);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(byte_source_open(&source, path, NULL), STATUS_OK);
    assert_int_equal(seteuid(nobody), 0);
    double others = byte_source_cached_ratio(&source);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(seteuid(nobody), 0);
    double writable = byte_source_cached_ratio(&source);
    assert_int_equal(seteuid(0), 0);
    byte_source_close(&source);
    assert_true(others < 0.0);
    assert_true(writable < 0.0 || writable == 1.0); // its folder is root's alone
}

TEST_CASE(writer_leaves_nothing_half_done)
{
    struct gguf_writer *writer = NULL;
    struct error err = {0};
    const char *path = model_files_write("kept.gguf", "old", 3);
    assert_int_equal(gguf_writer_open(&writer, path, &err), STATUS_OK);
    gguf_writer_tensor(writer, "t", GGUF_TENSOR_F32, 1, 4);
    gguf_writer_data(writer, "1234", 4); // 12 bytes are missing
    assert_int_equal(gguf_writer_close(writer, STATUS_CANCELLED, &err), STATUS_CANCELLED);
    size_t size;
    unsigned char *data = read_file(path, &size);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "old", 3);
    free(data);
    assert_int_equal(gguf_writer_open(&writer, "/nonexistent-folder/x", &err), STATUS_IO);
    assert_non_null(strstr(err.text, "/nonexistent-folder/x"));
}

// A part of a model with a key of `bytes` bytes and `count` tensors, all named after `name`.
static struct gguf *make_part(const char *name, size_t bytes, int count)
{
    struct gguf_writer *writer = NULL;
    struct gguf *part = NULL;
    struct error err = {0};
    const char *path = model_files_path(name);
    const float one = 1;
    char each[64];
    unsigned char *value = calloc(bytes + 1, 1);
    assert_non_null(value);
    assert_int_equal(gguf_writer_open(&writer, path, &err), STATUS_OK);
    gguf_writer_array(writer, name, GGUF_UINT8, value, bytes);
    for (int i = 0; i < count; i++) {
        (void)snprintf(each, sizeof each, "%s%d", name, i);
        gguf_writer_tensor(writer, each, GGUF_TENSOR_F32, 1, 1);
    }
    for (int i = 0; i < count; i++) {
        gguf_writer_align(writer);
        gguf_writer_data(writer, &one, sizeof one);
    }
    expect_ok(gguf_writer_close(writer, STATUS_OK, &err), &err);
    free(value);
    struct byte_source source;
    expect_ok(byte_source_open(&source, path, &err), &err);
    expect_ok(gguf_read(&part, &source, NULL, &err), &err);
    byte_source_close(&source);
    return part;
}

// The limits of one header hold for those of all parts together.
TEST_CASE(parts_share_limits)
{
    static const struct {
        size_t bytes;
        int count;
        const char *says;
    } cases[] = {
        {15 << 20, 2, NULL},
        {17 << 20, 2, "its header makes those of all parts longer than 48 MB"},
        {1, 43690, NULL},
        {1, 43691, "the parts up to it have more than 131072 tensors"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct error err = {0};
        struct gguf *whole = make_part("a", cases[i].bytes, cases[i].count);
        struct gguf *second = make_part("b", cases[i].bytes, cases[i].count);
        expect_ok(gguf_append(whole, second, 1000, &err), &err);
        struct gguf *third = make_part("c", cases[i].bytes, cases[i].count);
        const enum status status = gguf_append(whole, third, 2000, &err);
        if (cases[i].says) {
            assert_int_equal(status, STATUS_UNSUPPORTED);
            assert_string_equal(err.text, cases[i].says);
        } else {
            expect_ok(status, &err);
            assert_int_equal(gguf_tensor_count(whole), 3 * cases[i].count);
            assert_int_equal(gguf_find_tensor(whole, "c1")->offset,
                             gguf_find_tensor(whole, "a1")->offset + 2000);
        }
        gguf_free(whole);
    }
}

TEST_CASE(types_are_those_of_devices)
{
    for (size_t i = 0; i < TENSOR_TYPE_COUNT; i++) {
        const struct tensor_format *format = &tensor_formats[i];
        const struct gguf_tensor_type *type = gguf_tensor_type(format->number);
        assert_non_null(type);
        assert_string_equal(type->name, format->name);
        assert_int_equal(type->block_elements, format->block_elements);
        assert_int_equal(type->block_bytes, format->block_bytes);
    }
}

TEST_MAIN_ONCE(model_files_setup, model_files_teardown, round_trip, getters_refuse,
               integers_of_every_width, floats_are_finite_and_bools_are_bools, refusals, duplicates,
               alignment, truncated_at_every_byte, random_damage, files_that_are_none,
               shrinking_file, reading_can_be_cancelled, warm_and_cold_files, a_file_of_others,
               writer_leaves_nothing_half_done, parts_share_limits, types_are_those_of_devices)
