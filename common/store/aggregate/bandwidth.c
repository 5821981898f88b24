#include "common/store/aggregate/bandwidth.h"

#define OF_MODEL(what)                                                                             \
    "(SELECT m." what " FROM model m WHERE m.run = t.run AND m.name = t.model"                     \
    " ORDER BY m.id DESC LIMIT 1)"

#define WEIGHTS                                                                                    \
    "coalesce(" OF_MODEL(                                                                          \
        "weight_bytes_per_token") ", (SELECT l.model_bytes FROM load l WHERE l.run = t.run AND "   \
                                  "l.model = t.model"                                              \
                                  " AND l.status = 0 ORDER BY l.id DESC LIMIT 1), " OF_MODEL(      \
                                      "file_bytes") ")"

#define KV_BYTES OF_MODEL("kv_bytes_per_token")

// What the device could have read meanwhile, in billionths of bytes.
#define COULD_READ                                                                                 \
    "CASE WHEN t.generated_tokens >= 2 THEN (t.e2e_ns - t.ttft_ns) *"                              \
    " (SELECT d.memory_bandwidth_bytes_per_second FROM device d WHERE d.run = t.run"               \
    " AND d.name = t.device ORDER BY d.id DESC LIMIT 1) END"

const struct record_derived bandwidth_used = {
    .name = QUERY_METRIC_MBU,
    .numerator = "(" WEIGHTS " + coalesce(" KV_BYTES ", 0) *"
                 " (t.prompt_tokens + t.generated_tokens / 2.0))"
                 " * (t.generated_tokens - 1) * 1e9",
    .denominator = COULD_READ,
    .kind = RECORD_KIND_INFERENCE,
    .unit = UNIT_RATIO,
};

const struct record_derived arithmetic_used = {
    .name = QUERY_METRIC_MFU,
    .numerator =
        "2.0 * " OF_MODEL("parameters") " * (t.prompt_tokens - coalesce(t.cached_prompt_tokens, 0)"
                                        " + t.generated_tokens - 1) * 1e9",
    .denominator = "CASE WHEN t.generated_tokens >= 1 THEN (t.e2e_ns - t.queue_ns) *"
                   " (SELECT d.flops_per_second FROM device d WHERE d.run = t.run"
                   " AND d.name = t.device ORDER BY d.id DESC LIMIT 1) END",
    .kind = RECORD_KIND_INFERENCE,
    .unit = UNIT_RATIO,
};

static const struct record_derived of_weights = {
    .name = "mbu_of_weights",
    .numerator = "1",
    .denominator = "CASE WHEN " KV_BYTES " IS NULL AND " WEIGHTS " IS NOT NULL"
                   " AND (" COULD_READ ") > 0 THEN 1 END",
    .kind = RECORD_KIND_INFERENCE,
    .unit = UNIT_COUNT,
};

const struct query_metric bandwidth_of_weights = {
    .kind = RECORD_KIND_INFERENCE,
    .name = "mbu_of_weights",
    .unit = UNIT_COUNT,
    .column = -1,
    .derived = &of_weights,
};
