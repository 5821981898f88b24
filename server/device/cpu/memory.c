#include "server/device/cpu/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "server/device/cpu/cpu_stream.h"

enum {
    ALIGNMENT = 256,
    // Bytes from which on memory gets pages of its own.
    MAPPED_MIN = 1024 * 1024,
};

// ---- Memory ---------------------------------------------------------------

// Large pieces are mapped: zeroed by the system when first touched, in huge pages
// where it has them, and given back at once when freed.
static void *map_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    (void)madvise(memory, size, MADV_HUGEPAGE); // only a wish
    return memory;
}

static void *heap_memory(size_t size)
{
    size_t rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    return aligned_alloc(ALIGNMENT, rounded);
}

enum status cpu_memory_new(struct device_stream *stream, void **out, size_t size, struct error *err)
{
    (void)stream;
    void *memory = size >= MAPPED_MIN ? map_memory(size) : heap_memory(size);
    if (!memory)
        return error_set(err, STATUS_NOMEM, "device cpu: no memory for %zu bytes", size);
    *out = memory;
    return STATUS_OK;
}

enum status cpu_allocate(struct device *device, void **out, size_t size, struct error *err)
{
    (void)device;
    enum status status = cpu_memory_new(NULL, out, size, err);
    if (status == STATUS_OK && size < MAPPED_MIN)
        memset(*out, 0, size);
    return status;
}

void cpu_release(struct device *device, void *memory, size_t size)
{
    (void)device;
    if (size >= MAPPED_MIN)
        (void)munmap(memory, size);
    else
        free(memory);
}

struct free_arguments {
    void *memory;
    size_t size;
};

static enum status run_free(struct cpu_stream *stream, void *arguments, struct error *err)
{
    (void)err;
    const struct free_arguments *freed = arguments;
    cpu_release(stream->base.device, freed->memory, freed->size);
    return STATUS_OK;
}

void cpu_memory_free(struct device_stream *stream, void *memory, size_t size)
{
    static const struct command command = {.name = "free", .run = run_free, .always = true};
    struct free_arguments freed = {.memory = memory, .size = size};
    // A failure of the stream is told by others: the memory is freed all the same.
    (void)!cpu_stream_add((struct cpu_stream *)stream, &command, &freed, sizeof freed, NULL);
}

enum status cpu_pinned_new(struct device *device, void **out, size_t size, struct error *err)
{
    (void)device;
    void *memory = map_memory(size);
    if (!memory)
        return error_set(err, STATUS_NOMEM, "device cpu: no pinned memory for %zu bytes", size);
    (void)mlock(memory, size); // only a wish
    *out = memory;
    return STATUS_OK;
}

void cpu_pinned_free(struct device *device, void *memory, size_t size)
{
    (void)device;
    (void)munmap(memory, size);
}

// ---- Copies ---------------------------------------------------------------

struct copy_arguments {
    void *to;
    const void *from;
    size_t size;
};

static enum status run_copy(struct cpu_stream *stream, void *arguments, struct error *err)
{
    (void)stream;
    (void)err;
    const struct copy_arguments *copy = arguments;
    memcpy(copy->to, copy->from, copy->size);
    return STATUS_OK;
}

enum status cpu_stream_copy(struct device_stream *stream, enum device_copy copy, void *to,
                            const void *from, size_t size, struct error *err)
{
    static const struct command commands[] = {
#define COPY_COMMAND(name_, text) {.name = (text), .run = run_copy},
        DEVICE_COPY_TABLE(COPY_COMMAND)
#undef COPY_COMMAND
    };
    struct copy_arguments arguments = {.to = to, .from = from, .size = size};
    return cpu_stream_add((struct cpu_stream *)stream, &commands[copy], &arguments,
                          sizeof arguments, err);
}

struct fill_arguments {
    void *to;
    int byte;
    size_t size;
};

static enum status run_fill(struct cpu_stream *stream, void *arguments, struct error *err)
{
    (void)stream;
    (void)err;
    const struct fill_arguments *fill = arguments;
    memset(fill->to, fill->byte, fill->size);
    return STATUS_OK;
}

enum status cpu_stream_fill(struct device_stream *stream, void *to, int byte, size_t size,
                            struct error *err)
{
    static const struct command command = {.name = "fill", .run = run_fill};
    struct fill_arguments arguments = {.to = to, .byte = byte, .size = size};
    return cpu_stream_add((struct cpu_stream *)stream, &command, &arguments, sizeof arguments, err);
}
