#include "client/cli/commands/llama_bench.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "common/store/transfer/store_builder.h"

enum {
    FILE_BYTES_MAX = 64 << 20,
    RESULTS_MAX = 10000,
    SAMPLES_MAX = 1000000, // of one result
    NAME_SIZE = 256,
    TEXT_SIZE = 1024,
};

// The largest number accepted: exact as a double, and a hundred days in nanoseconds.
static const int64_t value_max = INT64_C(1) << 53;

static const char who[] = "llama-bench";

// One result being converted.
struct bench {
    struct store_builder *builder;
    json_t *result;
    size_t index; // from 1

    // As the result has them: the texts are its own; absent ones are NULL and 0.
    const char *commit, *cpu, *gpu, *model_type, *model_path, *test_time;
    int64_t build, threads, parameters, model_bytes, n_prompt, n_gen, n_depth;

    char model[NAME_SIZE]; // the name of the model's file
    const char *device;
    uint32_t model_name, device_name;
    int64_t started_ns, total_ns;
};

static const struct field {
    const char *key;
    size_t offset;
    size_t text_size;   // its most; 0: an integer
    bool may_be_absent; // from older versions
} fields[] = {
    {"n_prompt", offsetof(struct bench, n_prompt), 0, false},
    {"n_gen", offsetof(struct bench, n_gen), 0, false},
    {"n_depth", offsetof(struct bench, n_depth), 0, true},
    {"test_time", offsetof(struct bench, test_time), 64, false},
    {"model_filename", offsetof(struct bench, model_path), TEXT_SIZE, false},
    {"model_type", offsetof(struct bench, model_type), NAME_SIZE, false},
    {"model_n_params", offsetof(struct bench, parameters), 0, true},
    {"model_size", offsetof(struct bench, model_bytes), 0, true},
    {"cpu_info", offsetof(struct bench, cpu), NAME_SIZE, false},
    {"gpu_info", offsetof(struct bench, gpu), NAME_SIZE, true},
    {"n_threads", offsetof(struct bench, threads), 0, true},
    {"build_commit", offsetof(struct bench, commit), 64, false},
    {"build_number", offsetof(struct bench, build), 0, true},
};

// ---- The file --------------------------------------------------------------------------------

static FILE *open_file(const char *path)
{
    struct stat about;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    FILE *file = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= FILE_BYTES_MAX
                     ? fdopen(fd, "r")
                     : NULL;
    if (!file)
        (void)close(fd);
    return file;
}

bool llama_bench_is_json(const char *path)
{
    FILE *file = open_file(path);
    if (!file)
        return false;
    int first = ' ';
    while (first == ' ' || first == '\t' || first == '\n' || first == '\r')
        first = fgetc(file);
    (void)fclose(file);
    return first == '[' || first == '{';
}

// ---- Values ----------------------------------------------------------------------------------

static enum status fault(const struct bench *bench, const char *key, const char *what,
                         struct error *err)
{
    return error_set(err, STATUS_INVALID, "result %zu: %s: %s", bench->index, key, what);
}

// The parser has checked that texts are UTF-8 and have no NUL.
static enum status parse_field(struct bench *bench, const struct field *field, struct error *err)
{
    const json_t *value = json_object_get(bench->result, field->key);
    unsigned char *member = (unsigned char *)bench + field->offset;
    if (!value)
        return field->may_be_absent
                   ? STATUS_OK
                   : fault(bench, field->key, "missing (is this of llama-bench -o json?)", err);
    if (field->text_size > 0) {
        const char *text = json_string_value(value);
        if (!text || strlen(text) >= field->text_size)
            return fault(bench, field->key, "no text, or a very long one", err);
        memcpy(member, &text, sizeof text);
        return STATUS_OK;
    }
    const int64_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    if (number < 0 || number > value_max)
        return fault(bench, field->key, "no number, or one that cannot be", err);
    memcpy(member, &number, sizeof number);
    return STATUS_OK;
}

// "models/Qwen2.5-7B-Instruct-Q4_K_M.gguf": without folder and ending.
static enum status parse_model(struct bench *bench, struct error *err)
{
    const char *slash = strrchr(bench->model_path, '/');
    const char *name = slash ? slash + 1 : bench->model_path;
    size_t size = strlen(name);
    if (size > 5 && strcmp(name + size - 5, ".gguf") == 0)
        size -= 5;
    if (size == 0 || size >= NAME_SIZE)
        return fault(bench, "model_filename", "no file's name, or a very long one", err);
    (void)snprintf(bench->model, sizeof bench->model, "%.*s", (int)size, name);
    return STATUS_OK;
}

// The GPU if layers run on it, else the CPU.
static const char *find_device(const struct bench *bench)
{
    const json_t *layers = json_object_get(bench->result, "n_gpu_layers");
    const bool on_cpu = json_is_integer(layers) && json_integer_value(layers) == 0;
    const char *device = bench->gpu && bench->gpu[0] && !on_cpu ? bench->gpu : bench->cpu;
    return device[0] ? device : "cpu";
}

// "2025-04-24T11:58:50Z", always UTC.
static enum status parse_time(struct bench *bench, struct error *err)
{
    struct tm when = {0};
    const char *end = strptime(bench->test_time, "%Y-%m-%dT%H:%M:%SZ", &when);
    const time_t seconds = end && !*end ? timegm(&when) : -1;
    if (seconds < 0 || seconds > INT64_MAX / INT64_C(2000000000))
        return fault(bench, "test_time", "no time like 2025-04-24T11:58:50Z", err);
    bench->started_ns = (int64_t)seconds * INT64_C(1000000000);
    return STATUS_OK;
}

// ---- Identity --------------------------------------------------------------------------------

// 128 bits of FNV-1a (Fowler, Noll and Vo), of the result written in one way only,
// as a UUID of version 8 (RFC 9562).
static bool identify(const struct bench *bench, unsigned char uuid[16])
{
    __extension__ typedef unsigned __int128 wide;
    const wide prime = ((wide)0x1000000 << 64) | 0x13b;
    wide hash = ((wide)UINT64_C(0x6c62272e07bb0142) << 64) | UINT64_C(0x62b821756295c58d);
    char *text = json_dumps(bench->result, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return false;
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * prime;
    free(text);
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(hash >> (8 * i));
    uuid[6] = (unsigned char)((uuid[6] & 0x0f) | 0x80);
    uuid[8] = (unsigned char)((uuid[8] & 0x3f) | 0x80);
    return true;
}

// ---- Records ---------------------------------------------------------------------------------

// A text that does not fit the record is cut.
static void set_text(struct record *record, unsigned column, const char *text, size_t size)
{
    if (size > 0)
        (void)record_set_text(record, column, text, size);
}

// "qwen2 7B Q4_K - Medium": architecture, size, quantisation.
static enum status put_model(struct bench *bench, struct error *err)
{
    const char *type = bench->model_type;
    struct record record;
    record_init(&record, RECORD_KIND_MODEL, bench->started_ns);
    record_set_name(&record, MODEL_NAME, bench->model_name);
    set_text(&record, MODEL_FORMAT, "gguf", 4);
    set_text(&record, MODEL_ARCHITECTURE, type, strcspn(type, " "));
    const char *size = strchr(type, ' ');
    const char *rest = size ? strchr(size + 1, ' ') : NULL;
    if (rest)
        set_text(&record, MODEL_QUANTISATION, rest + 1, strlen(rest + 1));
    if (bench->parameters > 0)
        record_set_int(&record, MODEL_PARAMETERS, bench->parameters);
    if (bench->model_bytes > 0)
        record_set_int(&record, MODEL_FILE_BYTES, bench->model_bytes);
    return store_builder_put(bench->builder, &record, err);
}

// Requests do not queue, and generation tests have no prefill: these are 0.  The memory of
// the process is unknown: 0, as the column is required.
static enum status put_sample(struct bench *bench, int64_t request, int64_t at_ns,
                              int64_t sample_ns, struct error *err)
{
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, at_ns);
    record_set_name(&record, INFERENCE_MODEL, bench->model_name);
    record_set_name(&record, INFERENCE_DEVICE, bench->device_name);
    record_set_int(&record, INFERENCE_REQUEST, request);
    record_set_int(&record, INFERENCE_FINISH, RECORD_FINISH_LENGTH);
    record_set_int(&record, INFERENCE_PROMPT_TOKENS, bench->n_prompt + bench->n_depth);
    record_set_int(&record, INFERENCE_CACHED_PROMPT_TOKENS, bench->n_depth);
    record_set_int(&record, INFERENCE_GENERATED_TOKENS, bench->n_gen);
    record_set_int(&record, INFERENCE_QUEUE_NS, 0);
    record_set_int(&record, INFERENCE_PREFILL_NS, bench->n_gen == 0 ? sample_ns : 0);
    record_set_int(&record, INFERENCE_E2E_NS, sample_ns);
    record_set_int(&record, INFERENCE_HOST_MEMORY, 0);
    if (bench->n_prompt == 0) {
        const int64_t first_ns = sample_ns / bench->n_gen;
        record_set_int(&record, INFERENCE_TTFT_NS, first_ns);
        if (bench->n_gen > 1)
            record_set_int(&record, INFERENCE_DECODE_NS, sample_ns - first_ns);
    }
    return store_builder_put(bench->builder, &record, err);
}

// ---- Results ---------------------------------------------------------------------------------

// The samples are times above zero; adds them up.
static enum status check_samples(struct bench *bench, const json_t *samples, struct error *err)
{
    const size_t count = json_array_size(samples); // 0 of what is no array
    if (count == 0 || count > SAMPLES_MAX)
        return fault(bench, "samples_ns", "missing, or no list of times", err);
    for (size_t i = 0; i < count; i++) {
        const int64_t ns = json_integer_value(json_array_get(samples, i)); // 0 of no integer
        if (ns <= 0 || ns > value_max - bench->total_ns)
            return fault(bench, "samples_ns", "a time that cannot be", err);
        bench->total_ns += ns;
    }
    return STATUS_OK;
}

static enum status begin_run(struct bench *bench, struct error *err)
{
    char version[128];
    struct store_builder_run run = {.host = who,
                                    .worker_version = version,
                                    .os = "unknown",
                                    .kernel = "unknown",
                                    .cpu = bench->cpu,
                                    .cpu_count = bench->threads,
                                    .device_count = 1,
                                    .started_ns = bench->started_ns,
                                    .ended_ns = bench->started_ns + bench->total_ns};
    (void)snprintf(version, sizeof version, "llama.cpp %s (%" PRId64 ")", bench->commit,
                   bench->build);
    if (!identify(bench, run.uuid))
        return error_no_memory(err, "import");
    enum status status = store_builder_run(bench->builder, &run, err);
    if (status == STATUS_OK)
        status = store_builder_name(bench->builder, bench->model, &bench->model_name, err);
    if (status == STATUS_OK)
        status = store_builder_name(bench->builder, bench->device, &bench->device_name, err);
    return status;
}

static enum status parse_result(struct bench *bench, const json_t *samples, struct error *err)
{
    if (!json_is_object(bench->result))
        return error_set(err, STATUS_INVALID, "result %zu: no object", bench->index);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (parse_field(bench, &fields[i], err) != STATUS_OK)
            return STATUS_INVALID;
    if (bench->n_prompt == 0 && bench->n_gen == 0)
        return fault(bench, "n_gen", "nothing was tested", err);
    if (bench->n_prompt > value_max - bench->n_depth)
        return fault(bench, "n_depth", "a number that cannot be", err);
    bench->device = find_device(bench);
    enum status status = parse_time(bench, err);
    if (status == STATUS_OK)
        status = parse_model(bench, err);
    return status == STATUS_OK ? check_samples(bench, samples, err) : status;
}

static enum status convert_result(struct bench *bench, struct error *err)
{
    const json_t *samples = json_object_get(bench->result, "samples_ns");
    enum status status = parse_result(bench, samples, err);
    if (status == STATUS_OK)
        status = begin_run(bench, err);
    if (status == STATUS_OK)
        status = put_model(bench, err);
    int64_t at_ns = bench->started_ns;
    for (size_t i = 0; status == STATUS_OK && i < json_array_size(samples); i++) {
        const int64_t sample_ns = json_integer_value(json_array_get(samples, i));
        status = put_sample(bench, (int64_t)i + 1, at_ns, sample_ns, err);
        at_ns += sample_ns;
    }
    return status;
}

// ---- All of it -------------------------------------------------------------------------------

// A duplicate result is one run.
static bool is_repeated(const json_t *results, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (json_equal(json_array_get(results, i), json_array_get(results, at)))
            return true;
    return false;
}

// An array of results, or one result after the other.
static json_t *read_results(FILE *file, const char *path, struct error *err)
{
    json_error_t why;
    json_t *results = json_array();
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK;
    for (int c = ' '; results && c != EOF;) {
        json_t *value = json_loadf(file, flags, &why);
        const int failed = !value || (json_is_array(value) ? json_array_extend(results, value)
                                                           : json_array_append(results, value));
        json_decref(value);
        if (failed) {
            (void)error_set(err, STATUS_INVALID, "%s: line %d: %s", path, why.line,
                            value ? "out of memory" : why.text);
            json_decref(results);
            return NULL;
        }
        do
            c = fgetc(file);
        while (c == ' ' || c == '\t' || c == '\n' || c == '\r');
        (void)ungetc(c, file);
    }
    if (!results)
        (void)error_no_memory(err, "import");
    return results;
}

static enum status convert(struct store_builder *builder, const json_t *results, struct error *err)
{
    const size_t count = json_array_size(results);
    if (count == 0)
        return error_set(err, STATUS_NO_DATA, "no results in it");
    if (count > RESULTS_MAX)
        return error_set(err, STATUS_INVALID, "%zu results in it (at most %d)", count, RESULTS_MAX);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct bench bench = {
            .builder = builder, .result = json_array_get(results, i), .index = i + 1};
        if (!is_repeated(results, i))
            status = convert_result(&bench, err);
    }
    return status;
}

enum status llama_bench_convert(const char *path, const char *into, struct error *err)
{
    FILE *file = open_file(path);
    if (!file)
        return error_set(err, STATUS_IO, "%s: cannot be read, or larger than %d MB", path,
                         FILE_BYTES_MAX >> 20);
    struct error why = {.status = STATUS_INVALID};
    json_t *results = read_results(file, path, &why);
    (void)fclose(file);
    if (!results)
        return error_set(err, why.status, "%s", why.text);
    struct store_builder *builder = NULL;
    enum status status = store_builder_new(&builder, into, err);
    if (status == STATUS_OK) {
        status = convert(builder, results, &why);
        if (status != STATUS_OK)
            (void)error_set(err, status, "%s: %s", path, why.text);
        status = store_builder_end(builder, status, err);
    }
    json_decref(results);
    return status;
}
