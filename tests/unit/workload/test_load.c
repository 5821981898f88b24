// Loads as the worker runs them: what is recorded of them, in which stage.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/parse.h"
#include "common/sys/clock.h"
#include "server/workload/byte_source.h"
#include "tests/support/test.h"
#include "tests/unit/workload/llm_fixture.h"
#include "tests/unit/workload/model_files.h"

static const char *const stages[] = {"device_selection", "file_opening", "read_header",
                                     "tokenizer_init", "model_building"};

// The duration the last [LOAD] line gives `name`.
static int64_t duration_of(const char *name)
{
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "%s=", name);
    const char *found = strstr(load_line, wanted);
    if (!found) {
        fail_msg("no %s in '%s'", name, load_line);
        return 0;
    }
    char text[32];
    found += strlen(wanted);
    (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(found, ",] "), found);
    int64_t ns;
    assert_int_equal(parse_duration(&ns, text, name, NULL), STATUS_OK);
    return ns;
}

static enum status shrunk_read(const struct byte_source *source, uint64_t offset, void *to,
                               size_t size, struct error *err)
{
    struct byte_source smaller;
    byte_source_from_memory(&smaller, source->memory, 5000);
    return byte_source_read(&smaller, offset, to, size, err);
}

TEST_CASE(load_is_recorded)
{
    const char *path = model_files_path("recorded.model.gguf");
    assert_int_equal(synthetic_write(path, &model_files_smallest, TENSOR_F16, 1, 1, NULL),
                     STATUS_OK);
    struct inferstat_monitor *monitor = open_monitor();
    struct llm *llm = NULL;
    assert_int_equal(load(&llm, monitor, (struct llm_load_options){.path = path}, NULL), STATUS_OK);
    struct inferstat_event event = last_event(monitor, INFERSTAT_EVENT_LOAD);
    assert_string_equal(event.name, "recorded.model");
    assert_int_equal(event.status, INFERSTAT_RESULT_OK);
    int64_t sum = 0;
    for (size_t i = 0; i < COUNT_OF(stages); i++)
        sum += duration_of(stages[i]);
    // The line rounds each of them, "1.04ms" to "1.0ms" at worst.
    assert_true((double)sum <= (double)event.duration_ns * 1.05);
    assert_non_null(strstr(load_line, "model=recorded.model"));
    llm_free(llm);
    llm_free(NULL);
    close_monitor(monitor);
}

// Another byte anywhere in a small file, another size or another page of a large one.
TEST_CASE(digests_tell_files_apart)
{
    static unsigned char bytes[3000 * 4096 + 5];
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)test_random(&seed);
    static const size_t sizes[] = {0, 1, 4096, 4097, 256 * 4096, sizeof bytes - 1, sizeof bytes};
    char digests[COUNT_OF(sizes)][SOURCE_DIGEST_SIZE], again[SOURCE_DIGEST_SIZE];
    struct byte_source source;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        byte_source_from_memory(&source, bytes, sizes[i]);
        assert_int_equal(byte_source_digest(&source, digests[i]), STATUS_OK);
        for (size_t other = 0; other < i; other++)
            assert_string_not_equal(digests[i], digests[other]);
        if (sizes[i] == 0)
            continue;
        bytes[0] ^= 1;
        assert_int_equal(byte_source_digest(&source, again), STATUS_OK);
        assert_string_not_equal(again, digests[i]);
        bytes[0] ^= 1;
        bytes[sizes[i] - 1] ^= 1;
        assert_int_equal(byte_source_digest(&source, again), STATUS_OK);
        assert_string_not_equal(again, digests[i]);
        bytes[sizes[i] - 1] ^= 1;
        assert_int_equal(byte_source_digest(&source, again), STATUS_OK);
        assert_string_equal(again, digests[i]);
    }
    for (size_t i = 0; i < 256 * (size_t)4096; i += 4095) {
        byte_source_from_memory(&source, bytes, 256 * (size_t)4096);
        bytes[i] ^= 0x80;
        assert_int_equal(byte_source_digest(&source, again), STATUS_OK);
        assert_string_not_equal(again, digests[4]);
        bytes[i] ^= 0x80;
    }
    // A file that shrank has none.
    byte_source_from_memory(&source, bytes, 10000);
    source.size = 10000;
    struct byte_source shrunk = source;
    shrunk.read = shrunk_read;
    assert_int_equal(byte_source_digest(&shrunk, again), STATUS_CORRUPT);
}

// A delay inside a stage is that stage's and no other's.  Others may be slow by
// themselves on a busy machine, though not each time.
TEST_CASE(delay_shows_in_its_stage)
{
    enum { DELAY_NS = 200000000, ATTEMPTS = 5 };
    char delay[64];
    const char *path = model_files_path("delayed.gguf");
    assert_int_equal(synthetic_write(path, &model_files_smallest, TENSOR_F16, 1, 1, NULL),
                     STATUS_OK);
    struct inferstat_monitor *monitor = open_monitor();
    for (size_t delayed = 0; delayed < COUNT_OF(stages); delayed++) {
        bool others_quick = false;
        (void)snprintf(delay, sizeof delay, "%s:200", stages[delayed]);
        for (int attempt = 0; attempt < ATTEMPTS && !others_quick; attempt++) {
            struct llm *llm = NULL;
            struct llm_load_options options = {.path = path, .delay = delay};
            assert_int_equal(load(&llm, monitor, options, NULL), STATUS_OK);
            llm_free(llm);
            others_quick = true;
            for (size_t i = 0; i < COUNT_OF(stages); i++) {
                if (i == delayed)
                    assert_true(duration_of(stages[i]) >= DELAY_NS);
                else
                    others_quick = others_quick && duration_of(stages[i]) < DELAY_NS;
            }
        }
        assert_true(others_quick);
    }
    close_monitor(monitor);
}

// Asked before every stage and before every piece of the weights that is read.
static bool slowly(void)
{
    clock_sleep_until_ns(clock_monotonic_ns() + 20000000);
    return false;
}

// Weights that come slowly make the stage longer in which they are read.
TEST_CASE(slow_weights_show_in_model_building)
{
    const char *path = model_files_path("slow.gguf");
    assert_int_equal(synthetic_write(path, &model_files_smallest, TENSOR_F16, 1, 1, NULL),
                     STATUS_OK);
    struct inferstat_monitor *monitor = open_monitor();
    bool others_quick = false;
    for (int attempt = 0; attempt < 5 && !others_quick; attempt++) {
        struct llm *llm = NULL;
        struct llm_load_options options = {.path = path, .cancelled = slowly};
        assert_int_equal(load(&llm, monitor, options, NULL), STATUS_OK);
        llm_free(llm);
        // Twelve tensors, the model's smallest number.
        assert_true(duration_of("model_building") >= 12 * INT64_C(20000000));
        others_quick = true;
        for (size_t i = 0; i + 1 < COUNT_OF(stages); i++)
            others_quick = others_quick && duration_of(stages[i]) < 6 * INT64_C(20000000);
    }
    assert_true(others_quick);
    close_monitor(monitor);
}

static bool always(void)
{
    return true;
}

TEST_CASE(failed_loads_are_recorded)
{
    const char *none = model_files_path("none.gguf");
    const char *text = model_files_write("text.gguf", "hello, world", 12);
    const char *odd = model_files_write("odd\xff\x1b.gguf", "hello, world", 12);
    const struct {
        struct llm_load_options options;
        enum status status;
        int result;
        const char *says, *name, *last_stage;
    } cases[] = {
        {{.path = none},
         STATUS_NOT_FOUND,
         INFERSTAT_RESULT_ERROR,
         "none.gguf: cannot open",
         "none",
         "file_opening"},
        {{.path = text},
         STATUS_CORRUPT,
         INFERSTAT_RESULT_ERROR,
         "text.gguf: not a GGUF file",
         "text",
         "read_header"},
        {{.path = text, .device.spec = "abacus"},
         STATUS_INVALID,
         INFERSTAT_RESULT_ERROR,
         "no such device",
         "text",
         "device_selection"},
        {{.path = odd},
         STATUS_CORRUPT,
         INFERSTAT_RESULT_ERROR,
         "not a GGUF file",
         "odd\\xFF\\x1B",
         "read_header"},
        {{.path = text, .cancelled = always},
         STATUS_CANCELLED,
         INFERSTAT_RESULT_CANCELLED,
         "stopped",
         "text",
         "device_selection"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct inferstat_monitor *monitor = open_monitor();
        struct llm *llm = NULL;
        struct error err = {0};
        assert_int_equal(load(&llm, monitor, cases[i].options, &err), cases[i].status);
        assert_null(llm);
        assert_non_null(strstr(err.text, cases[i].says));
        struct inferstat_event event = last_event(monitor, INFERSTAT_EVENT_LOAD);
        assert_int_equal(event.status, cases[i].result);
        assert_string_equal(event.name, cases[i].name);
        assert_non_null(strstr(load_line, cases[i].says));
        assert_non_null(strstr(load_line, cases[i].last_stage));
        close_monitor(monitor);
    }
}

static unsigned int polls;

static bool count_polls(void)
{
    polls++;
    return false;
}

TEST_CASE(contexts_are_refused_before_weights_are_read)
{
    static const struct {
        uint32_t context;
        enum status status;
        const char *says;
    } cases[] = {
        {0, STATUS_OK, ""},
        {(1 << 24) + 1, STATUS_INVALID, "context of 16777217: the model takes 1..16777216"},
        {1 << 24, STATUS_NOMEM, "a context of 16777216 needs 512.0 MB, but a model of "},
    };
    struct synthetic_shape shape = model_files_smallest;
    shape.context = 1 << 24;
    const char *path = model_files_path("long.gguf");
    assert_int_equal(synthetic_write(path, &shape, TENSOR_F16, 1, 1, NULL), STATUS_OK);
    struct inferstat_monitor *monitor = open_monitor();
    unsigned int complete = 0; // polls of a whole load
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct llm *llm = NULL;
        struct error err = {0};
        polls = 0;
        assert_int_equal(load(&llm, monitor,
                              (struct llm_load_options){.path = path,
                                                        .context = cases[i].context,
                                                        .cancelled = count_polls},
                              &err),
                         cases[i].status);
        assert_non_null(strstr(err.text, cases[i].says));
        if (cases[i].status == STATUS_OK)
            complete = polls;
        else
            assert_true(polls + 12 <= complete); // its weights are twelve tensors
        llm_free(llm);
    }
    close_monitor(monitor);
}

enum change { TRUNCATE, OVERWRITE, REPLACE };

static struct {
    const char *path;
    enum change change;
    unsigned int at, polls;
} changing;

// Asked at the start of each stage, before the header is read, and before each piece of weights.
static bool change_file(void)
{
    if (++changing.polls != changing.at)
        return false;
    if (changing.change == TRUNCATE) {
        assert_int_equal(truncate(changing.path, 5000), 0);
    } else if (changing.change == REPLACE) {
        const char *other = model_files_write("other.gguf", "another file", 12);
        assert_int_equal(rename(other, changing.path), 0);
    } else {
        const int fd = open(changing.path, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "x", 1, 20000), 1);
        assert_int_equal(close(fd), 0);
    }
    return false;
}

// A file that changes while it is read ends the load; one that is replaced is read to its end.
TEST_CASE(files_that_change)
{
    enum { HEADER = 4, WEIGHTS = 8 }; // polls
    static const struct {
        enum change change;
        unsigned int at;
        enum status status;
        const char *says;
    } cases[] = {
        {TRUNCATE, HEADER, STATUS_CORRUPT, "changing.gguf: the file ends at byte 5000"},
        {TRUNCATE, WEIGHTS, STATUS_CORRUPT, "': the file ends at byte "},
        {OVERWRITE, HEADER, STATUS_CORRUPT, "changing.gguf: the file was changed while"},
        {OVERWRITE, WEIGHTS, STATUS_CORRUPT, "changing.gguf: the file was changed while"},
        {REPLACE, WEIGHTS, STATUS_OK, "[LOAD]"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *path = model_files_path("changing.gguf");
        const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
        struct inferstat_monitor *monitor = open_monitor();
        struct llm *llm = NULL;
        struct error err = {0};
        assert_int_equal(synthetic_write(path, &model_files_smallest, TENSOR_F16, 1, 1, NULL),
                         STATUS_OK);
        assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
        changing.path = path;
        changing.change = cases[i].change;
        changing.at = cases[i].at;
        changing.polls = 0;
        struct llm_load_options options = {.path = path, .cancelled = change_file};
        assert_int_equal(load(&llm, monitor, options, &err), cases[i].status);
        assert_in_range(changing.polls, changing.at, 100);
        if (!strstr(load_line, cases[i].says))
            fail_msg("case %zu: '%s'", i, load_line);
        const struct inferstat_event event = last_event(monitor, INFERSTAT_EVENT_LOAD);
        assert_int_equal(event.status, cases[i].status == STATUS_OK ? INFERSTAT_RESULT_OK
                                                                    : INFERSTAT_RESULT_ERROR);
        llm_free(llm);
        close_monitor(monitor);
    }
}

TEST_MAIN_ONCE(model_files_setup, model_files_teardown, load_is_recorded, digests_tell_files_apart,
               delay_shows_in_its_stage, slow_weights_show_in_model_building,
               failed_loads_are_recorded, contexts_are_refused_before_weights_are_read,
               files_that_change)
