#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/core/base/unit.h"
#include "common/sys/log.h"
#include "server/worker/worker.h"
#include "server/workload/llm/synthetic.h"

enum { TYPE_F32, TYPE_F16 };

static struct {
    int shape, type;
    int64_t seed;
    bool force;
} options = {.shape = SYNTHETIC_15M, .type = TYPE_F16, .seed = 1};

#define OPTION_TARGET __typeof__(options)

static const char *shape_word(unsigned i)
{
    return i < SYNTHETIC_COUNT ? synthetic_shapes[i].name : NULL;
}

static const char *type_word(unsigned i)
{
    static const char *const words[] = {[TYPE_F32] = "f32", [TYPE_F16] = "f16"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const struct option rows[] = {
    {"shape", "tiny|15m|42m", "the model's size (default 15m)", CHOICE_AT(shape, shape_word)},
    {"type", "f32|f16", "type of the weights (default f16)", CHOICE_AT(type, type_word)},
    {"seed", "S", "seed of the random weights (default 1)", INTEGER_AT(seed, 0, INT32_MAX)},
    {"force", NULL, "replace an existing file", FLAG_AT(force)},
};

static const struct option_table table = {
    .options = rows, .count = sizeof rows / sizeof *rows, .target = &options};

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

static int run(const struct worker_options *worker, char *const *words, int count)
{
    (void)worker;
    struct error err = {0};
    if (count != 1) {
        (void)error_set(&err, STATUS_INVALID, "make-model: one file to write is needed (OUT.gguf)");
        return worker_fail(&err);
    }
    const struct synthetic_shape *shape = &synthetic_shapes[options.shape];
    enum status status = check_target(words[0], &err);
    if (status == STATUS_OK)
        status = synthetic_write(words[0], shape, options.type == TYPE_F16, (uint64_t)options.seed,
                                 &err);
    if (status != STATUS_OK)
        return worker_fail(&err);

    struct stat info;
    char size[UNIT_TEXT_SIZE] = "-";
    if (stat(words[0], &info) == 0)
        (void)unit_format_int(size, UNIT_BYTES, info.st_size);
    (void)printf("%s: a synthetic model of random weights, %s, %s, %s\n", words[0], shape->name,
                 type_word((unsigned)options.type), size);
    return WORKER_DONE;
}

const struct worker_command command_make_model = {
    .name = "make-model",
    .summary = "write a synthetic model with random weights",
    .words = "OUT.gguf",
    .options = &table,
    .run = run,
};
