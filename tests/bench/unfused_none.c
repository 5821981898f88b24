// unfused.h where there is no back end that can.
#include "tests/bench/unfused.h"

bool unfused_runs(const struct device *device)
{
    (void)device;
    return false;
}

enum status unfused_amplitude(struct device_stream *stream, const struct encode_job *job,
                              const struct unfused_memory *memory, struct error *err)
{
    (void)stream;
    (void)job;
    (void)memory;
    return error_set(err, STATUS_UNSUPPORTED, "unfused: built without CUDA");
}

enum status unfused_passes(struct device_stream *stream, const struct encode_job *job,
                           struct error *err)
{
    (void)stream;
    (void)job;
    return error_set(err, STATUS_UNSUPPORTED, "unfused: built without CUDA");
}
