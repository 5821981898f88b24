#include "tests/support/gpu/cupti_trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Records grow with CUPTI's versions at their ends.
#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
typedef CUpti_ActivityMemcpy6 copy_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemcpy5 copy_record;
#endif
typedef CUpti_ActivityMemset4 fill_record;

enum { BUFFER_SIZE = 1 << 20, BUFFER_ALIGNMENT = 8 };

static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

// Filled by CUPTI's threads.
static struct {
    pthread_mutex_t lock;
    struct activity list[ACTIVITY_MAX];
    size_t count;
    size_t lost;
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

// Records are packed in places: members are copied out.
static bool of_kernel(const CUpti_Activity *record, struct activity *out)
{
    kernel_record kernel;
    memcpy(&kernel, record, sizeof kernel);
    *out = (struct activity){OVERLAP_COMPUTE, kernel.start, kernel.end};
    return true;
}

static bool of_fill(const CUpti_Activity *record, struct activity *out)
{
    fill_record fill;
    memcpy(&fill, record, sizeof fill);
    *out = (struct activity){OVERLAP_COMPUTE, fill.start, fill.end};
    return true;
}

static bool of_copy(const CUpti_Activity *record, struct activity *out)
{
    copy_record copy;
    memcpy(&copy, record, sizeof copy);
    *out = (struct activity){OVERLAP_COPY, copy.start, copy.end};
    if (copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD)
        out->side = OVERLAP_COMPUTE;
    return copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD ||
           copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
}

bool cupti_activity(const CUpti_Activity *record, struct activity *out)
{
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        return of_kernel(record, out);
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
        return of_fill(record, out);
    return record->kind == CUPTI_ACTIVITY_KIND_MEMCPY && of_copy(record, out);
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *records_max)
{
    *buffer = aligned_alloc(BUFFER_ALIGNMENT, BUFFER_SIZE);
    *size = *buffer ? BUFFER_SIZE : 0;
    *records_max = 0; // as many as fit
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
    (void)size;
    CUpti_Activity *record = NULL;
    size_t lost = 0;
    (void)pthread_mutex_lock(&trace.lock);
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        struct activity activity;
        if (!cupti_activity(record, &activity))
            continue;
        if (trace.count < ACTIVITY_MAX)
            trace.list[trace.count++] = activity;
        else
            trace.lost++;
    }
    if (cuptiActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS)
        trace.lost += lost;
    (void)pthread_mutex_unlock(&trace.lock);
    free(buffer);
}

static enum status check(CUptiResult code, const char *call, struct error *err)
{
    const char *text = NULL;
    if (code == CUPTI_SUCCESS)
        return STATUS_OK;
    (void)cuptiGetResultString(code, &text);
    return error_set(err, STATUS_UNSUPPORTED, "%s: %s", call, text ? text : "unknown error");
}

enum status cupti_trace_start(struct error *err)
{
    (void)pthread_mutex_lock(&trace.lock);
    trace.count = trace.lost = 0;
    (void)pthread_mutex_unlock(&trace.lock);
    enum status status = check(cuptiActivityRegisterCallbacks(give_buffer, take_buffer),
                               "cuptiActivityRegisterCallbacks", err);
    for (int i = 0; i < KIND_COUNT && status == STATUS_OK; i++)
        status = check(cuptiActivityEnable(kinds[i]), "cuptiActivityEnable", err);
    return status;
}

enum status cupti_trace_stop(struct activity *list, size_t room, size_t *count, struct error *err)
{
    enum status status = check(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
                               "cuptiActivityFlushAll", err);
    for (int i = 0; i < KIND_COUNT; i++)
        (void)cuptiActivityDisable(kinds[i]);
    (void)pthread_mutex_lock(&trace.lock);
    if (status == STATUS_OK && (trace.lost > 0 || trace.count > room))
        status = error_set(err, STATUS_IO, "CUPTI: %zu records were lost", trace.lost);
    if (status == STATUS_OK) {
        memcpy(list, trace.list, trace.count * sizeof *list);
        *count = trace.count;
    }
    (void)pthread_mutex_unlock(&trace.lock);
    return status;
}
