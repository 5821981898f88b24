#include "common/devices/nvml_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct symbol {
    size_t offset; // of the pointer in struct nvml_library
    const char *name, *earlier;
};

static const struct symbol symbols[] = {
#define SYMBOL(name, symbol, earlier, parameters)                                                  \
    {offsetof(struct nvml_library, name), symbol, earlier},
    NVML_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

static void find_functions(struct nvml_library *library)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(library->file, symbols[i].name);
        if (!found && *symbols[i].earlier)
            found = dlsym(library->file, symbols[i].earlier);
        memcpy((char *)library + symbols[i].offset, &found, sizeof found);
    }
}

bool nvml_library_open(struct nvml_library *library)
{
    const char *path = secure_getenv("INFERSTAT_TEST_NVML");
    *library = (struct nvml_library){
        .file = dlopen(path ? path : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!library->file)
        return false;
    find_functions(library);
    if (library->init && library->shutdown && library->init() == NVML_SUCCESS)
        return true;
    (void)dlclose(library->file);
    *library = (struct nvml_library){0};
    return false;
}

void nvml_library_close(struct nvml_library *library)
{
    if (!library->file)
        return;
    (void)library->shutdown();
    (void)dlclose(library->file);
    *library = (struct nvml_library){0};
}
