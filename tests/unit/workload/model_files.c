#include "tests/unit/workload/model_files.h"

#include "tests/support/folder.h"
#include "tests/support/test.h"

static char folder[FOLDER_PATH_SIZE];

const struct synthetic_shape model_files_smallest = {.name = "smallest",
                                                     .dim = 8,
                                                     .ff = 12,
                                                     .layers = 1,
                                                     .heads = 2,
                                                     .kv_heads = 1,
                                                     .vocabulary = 400,
                                                     .context = 16};

int model_files_setup(__attribute__((unused)) void **state)
{
    folder_make(folder);
    return 0;
}

int model_files_teardown(__attribute__((unused)) void **state)
{
    folder_remove(folder);
    return 0;
}

const char *model_files_path(const char *name)
{
    static char paths[4][FOLDER_PATH_SIZE];
    static unsigned int turn;
    return folder_path(paths[turn++ % 4], folder, name);
}

unsigned char *model_files_make(const struct synthetic_shape *shape, bool half, size_t *size)
{
    struct error err = {0};
    const char *path = model_files_path("made.gguf");
    expect_ok(synthetic_write(path, shape, half ? TENSOR_F16 : TENSOR_F32, 11, 1, &err), &err);
    return read_file(path, size);
}

const char *model_files_write(const char *name, const void *data, size_t size)
{
    return write_file(model_files_path(name), data, size);
}

// Names are stored with their length before them.
static size_t find_name(const unsigned char *data, size_t size, const char *name)
{
    unsigned char wanted[256];
    uint64_t length = strlen(name);
    memcpy(wanted, &length, sizeof length);
    memcpy(wanted + sizeof length, name, (size_t)length);
    const unsigned char *found = memmem(data, size, wanted, sizeof length + (size_t)length);
    if (!found)
        fail_msg("no '%s' in the file", name);
    return (size_t)(found - data) + sizeof length + (size_t)length;
}

size_t model_files_find_key(const unsigned char *data, size_t size, const char *key)
{
    return find_name(data, size, key) + sizeof(uint32_t);
}

size_t model_files_find_tensor(const unsigned char *data, size_t size, const char *name)
{
    return find_name(data, size, name);
}
