#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/core/base/unit.h"
#include "common/sys/log.h"
#include "common/sys/process.h"
#include "common/sys/stop.h"
#include "server/worker/worker.h"
#include "server/workload/llm/synthetic.h"

static struct {
    int shape, type;
    int64_t seed;
    bool force;
} options = {.shape = SYNTHETIC_15M, .type = TENSOR_F16, .seed = 1};

#define OPTION_TARGET __typeof__(options)

static const char *shape_word(unsigned i)
{
    return i < SYNTHETIC_COUNT ? synthetic_shapes[i].name : NULL;
}

// The names of the types in lower case.
static const char *type_word(unsigned i)
{
    static char words[TENSOR_TYPE_COUNT][8];
    if (i >= TENSOR_TYPE_COUNT)
        return NULL;
    const char *name = tensor_formats[i].name;
    for (size_t at = 0; at < sizeof words[i] - 1 && name[at]; at++)
        words[i][at] = (char)tolower((unsigned char)name[at]);
    return words[i];
}

static const struct option rows[] = {
    {"shape", "SHAPE", "tiny, 15m (default), 42m, 110m, 1b or 8b", CHOICE_AT(shape, shape_word)},
    {"type", "TYPE",
     "type of the weights: f32, f16 (default), bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k or "
     "q6_k",
     CHOICE_AT(type, type_word)},
    {"seed", "S", "seed of the random weights (default 1)", INTEGER_AT(seed, 0, INT32_MAX)},
    {"force", NULL, "replace an existing file", FLAG_AT(force)},
};

// An existing file is replaced only with --force, and only when it is a regular file.
static enum status check_target(const char *path, struct error *err)
{
    struct stat info;
    if (lstat(path, &info) != 0)
        return STATUS_OK; // writing reports the error
    if (!S_ISREG(info.st_mode))
        return error_set(err, STATUS_IO, "%s: exists and is no regular file", path);
    if (!options.force)
        return error_set(err, STATUS_IO, "%s: already exists (--force replaces it)", path);
    return STATUS_OK;
}

// A model without any weight of the type that was asked for is refused.
static enum status check_type(const struct synthetic_shape *shape, double typed_ratio,
                              struct error *err)
{
    if (typed_ratio > 0.0)
        return STATUS_OK;
    char suitable[64] = "";
    size_t size = 0;
    for (size_t i = 0; i < SYNTHETIC_COUNT; i++)
        if (synthetic_measure(&synthetic_shapes[i], (enum tensor_type)options.type).typed_ratio >=
            1.0)
            size += (size_t)snprintf(suitable + size, sizeof suitable - size, "%s%s",
                                     size > 0 ? ", " : "", synthetic_shapes[i].name);
    return error_set(err, STATUS_INVALID,
                     "make-model: --type %s: 0 %% of the weights of shape %s would have it, as its "
                     "rows are no multiples of %zu weights (shapes that suit: %s)",
                     type_word((unsigned)options.type), shape->name,
                     tensor_formats[options.type].block_elements, suitable);
}

static enum status write_model(const char *path, const struct synthetic_shape *shape,
                               unsigned int threads, struct error *err)
{
    struct process_host host;
    process_host_read(&host);
    if (threads == 0)
        threads = (unsigned int)host.cpu_count;
    enum status status = check_target(path, err);
    if (status == STATUS_OK)
        status = stop_install(err);
    if (status == STATUS_OK)
        status = synthetic_write(path, shape, (enum tensor_type)options.type,
                                 (uint64_t)options.seed, threads, err);
    return status;
}

static int run(const struct worker_options *worker, char *const *words, int count)
{
    struct error err = {0};
    if (count != 1) {
        (void)error_set(&err, STATUS_INVALID, "make-model: one file to write is needed (OUT.gguf)");
        return worker_fail(&err);
    }
    const struct synthetic_shape *shape = &synthetic_shapes[options.shape];
    const char *type = type_word((unsigned)options.type);
    const struct synthetic_measure measure =
        synthetic_measure(shape, (enum tensor_type)options.type);
    char size[UNIT_TEXT_SIZE];
    (void)unit_format_int(size, UNIT_BYTES, (int64_t)measure.bytes);
    enum status status = check_type(shape, measure.typed_ratio, &err);
    if (status == STATUS_OK) {
        log_write(LOG_LEVEL_INFO, "%s: writing %s of weights, %s, %s", words[0], size, shape->name,
                  type);
        status = write_model(words[0], shape, worker->device.threads, &err);
    }
    if (status == STATUS_CANCELLED)
        return WORKER_STOPPED;
    if (status != STATUS_OK)
        return worker_fail(&err);

    struct stat info;
    char mixed[64] = "";
    if (stat(words[0], &info) == 0)
        (void)unit_format_int(size, UNIT_BYTES, info.st_size);
    if (measure.typed_ratio < 1.0)
        (void)snprintf(mixed, sizeof mixed, " (%.0f %% of the weights are %s, the others f16)",
                       measure.typed_ratio * 100.0, type);
    (void)printf("%s: a synthetic model of random weights, %s, %s%s, %s\n", words[0], shape->name,
                 type, mixed, size);
    return WORKER_DONE;
}

const struct worker_command command_make_model = {
    .name = "make-model",
    .summary = "write a synthetic model with random weights",
    .words = "OUT.gguf",
    .options = {.options = rows, .count = sizeof rows / sizeof *rows, .target = &options},
    .run = run,
};
