// An LTTng-UST tracepoint of eight integer fields: what of an inference would fit.
// clang-format off
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER inferstat_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/bench/tracepoint.h"

#if !defined(INFERSTAT_TESTS_TRACEPOINT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define INFERSTAT_TESTS_TRACEPOINT_H

#include <stdint.h>

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    inferstat_bench, inference,
    LTTNG_UST_TP_ARGS(uint32_t, model, uint32_t, device, uint64_t, request, uint32_t, prompt_tokens,
                      uint64_t, generated_tokens, uint64_t, ttft_ns, uint64_t, decode_ns,
                      uint64_t, e2e_ns),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, model, model)
        lttng_ust_field_integer(uint32_t, device, device)
        lttng_ust_field_integer(uint64_t, request, request)
        lttng_ust_field_integer(uint32_t, prompt_tokens, prompt_tokens)
        lttng_ust_field_integer(uint64_t, generated_tokens, generated_tokens)
        lttng_ust_field_integer(uint64_t, ttft_ns, ttft_ns)
        lttng_ust_field_integer(uint64_t, decode_ns, decode_ns)
        lttng_ust_field_integer(uint64_t, e2e_ns, e2e_ns)))

#endif

#include <lttng/tracepoint-event.h>
