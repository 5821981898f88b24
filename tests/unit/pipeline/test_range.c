// The ranges that profilers see (range.h), by a listener in place of one: each chunk and
// group once, by name and number, begun and ended by the same thread.
#include "server/device/range.h"

#include <pthread.h>

#include <nvtx3/nvToolsExt.h>

#include "tests/support/test.h"
#include "tests/unit/pipeline/pipeline_rig.h"

enum { CHUNK_SIZE = 4096, CHUNKS = 10, GROUP_CHUNKS = 2, HEARD_MAX = 256 };

static struct {
    pthread_mutex_t lock;
    char names[HEARD_MAX][32];
    unsigned int count;
    unsigned int unbalanced; // ends without a beginning
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local int depth;

static int NVTX_API on_push(const char *name)
{
    (void)pthread_mutex_lock(&heard.lock);
    if (heard.count < HEARD_MAX) {
        char *room = heard.names[heard.count++];
        (void)snprintf(room, sizeof heard.names[0], "%s", name);
    }
    (void)pthread_mutex_unlock(&heard.lock);
    return depth++;
}

static int NVTX_API on_pop(void)
{
    if (depth > 0)
        return --depth;
    (void)pthread_mutex_lock(&heard.lock);
    heard.unbalanced++;
    (void)pthread_mutex_unlock(&heard.lock);
    return -1;
}

static int NVTX_API listen(NvtxGetExportTableFunc_t export_table)
{
    const NvtxExportTableCallbacks *callbacks = export_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned int size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size))
        return 0;
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)on_push;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)on_pop;
    return 1;
}

// What NVTX asks first, before it looks for a profiler.
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = listen;

static unsigned int times_heard(const char *name)
{
    unsigned int times = 0;
    for (unsigned int i = 0; i < heard.count; i++)
        times += strcmp(heard.names[i], name) == 0;
    return times;
}

TEST_CASE(forget)
{
    heard.count = heard.unbalanced = 0;
}

static void names_and_numbers(void **state)
{
    forget(state);
    range_begin("read_header");
    range_begin_at("copy", UINT64_MAX);
    assert_int_equal(depth, 2);
    range_end();
    range_end();
    assert_int_equal(depth, 0);
    assert_int_equal(heard.count, 2);
    assert_string_equal(heard.names[0], "read_header");
    assert_string_equal(heard.names[1], "copy 18446744073709551615");
    assert_int_equal(heard.unbalanced, 0);
}

static void a_run(void **state)
{
    struct rig rig;
    struct pipeline_figures figures;
    struct error err = {.status = STATUS_OK};
    forget(state);
    struct device *device = rig_device(NULL);
    rig_init(&rig, CHUNK_SIZE, (size_t)CHUNK_SIZE * CHUNKS, GROUP_CHUNKS);
    const struct pipeline_plan plan = rig_plan(&rig, 4, 2, 4, 2);
    assert_int_equal(rig_run(&rig, device, &plan, &figures, &err), STATUS_OK);
    static const struct {
        const char *name;
        unsigned int count;
    } kinds[] = {{"fill", CHUNKS},
                 {"copy", CHUNKS},
                 {"compute", CHUNKS / GROUP_CHUNKS},
                 {"take", CHUNKS / GROUP_CHUNKS}};
    unsigned int all = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        for (unsigned int number = 0; number < kinds[i].count; number++, all++) {
            char name[32];
            (void)snprintf(name, sizeof name, "%s %u", kinds[i].name, number);
            if (times_heard(name) != 1)
                fail_msg("%s: %u times", name, times_heard(name));
        }
    }
    assert_int_equal(heard.count, all);
    assert_int_equal(heard.unbalanced, 0);
    assert_int_equal(depth, 0);
    rig_deinit(&rig);
    device_close(device);
}

TEST_MAIN(names_and_numbers, a_run)
