// Schema of all record kinds and their columns, as X macros: the only source of the database
// schema, wire checks, CSV headers, JSON keys, `inferstat metrics`, the dashboard's labels
// and the manual page.
//
// To add a column, append a line to its kind and raise the schema version
// (common/store/schema/schema.h).  A column's position in its kind is its number on the wire,
// permanently.
//
// All kinds but RUN also have the columns run, stream and number, which identify a record.  A run
// is the time from inferstat_open to inferstat_close in a process; a stream, the sequence of
// records of one of its threads, numbered 1, 2, 3, ...  All kinds have two more columns:
// started_ns, by the host's wall clock (UTC), and received_ns, by the collector's.
//
// Kind:   X(KIND, "table", "the word for several", "what one record of it is")
// Column: X(KIND_COLUMN, "column", type, unit, presence, "meaning")
//   type:     INT   64-bit integer           REAL  double, never NaN or infinite
//             NAME  interned text (models, operations, stages, hosts, devices)
//             TEXT  short text, not interned BLOB  short bytes
//             or an enumeration below, stored as its number
//   unit:     an enum unit without UNIT_ (common/core/base/unit.h)
//   presence: ALWAYS, or MAYBE when it may be absent
#pragma once

#define RECORD_KINDS(X)                                                                            \
    X(RUN, "run", "runs", "one life of one worker process")                                        \
    X(DEVICE, "device", "devices", "a device a run uses")                                          \
    X(MODEL, "model", "models", "a model a run has loaded")                                        \
    X(STARTUP, "startup", "startups", "a process becoming ready to serve")                         \
    X(LOAD, "load", "loads", "one model load")                                                     \
    X(LOAD_STAGE, "load_stage", "load_stages", "one stage of a load or of a startup")              \
    X(INFERENCE, "inference", "inferences", "one request answered")                                \
    X(ITL, "itl", "itls", "the gaps between output tokens of all requests in a span")              \
    X(OPERATION, "operation", "operations", "one timed operation")                                 \
    X(PIPELINE, "pipeline", "pipelines", "one run of the streaming copy/compute pipeline")         \
    X(DEVICE_SAMPLE, "device_sample", "device_samples",                                            \
      "a device's counters over one sample period")                                                \
    X(PROCESS_SAMPLE, "process_sample", "process_samples",                                         \
      "the process at the end of a sample period")                                                 \
    X(HOST_SAMPLE, "host_sample", "host_samples", "the host over one sample period")               \
    X(DEVICE_PROCESS, "device_process", "device_processes", "a process on a device")               \
    X(EVENT, "event", "events", "trouble of a device or host")

#define RECORD_RUN(X)                                                                              \
    X(RUN_UUID, "uuid", TEXT, NONE, ALWAYS, "the run's 128 random bits, as a UUID")                \
    X(RUN_HOST, "host", NAME, NONE, ALWAYS, "name of the host")                                    \
    X(RUN_PID, "pid", INT, NONE, ALWAYS, "process id on that host")                                \
    X(RUN_ENDED_NS, "ended_ns", INT, TIME, MAYBE,                                                  \
      "when the run ended; of a silent one, when its connection closed")                           \
    X(RUN_END, "end", RUN_END, NONE, ALWAYS,                                                       \
      "how the run ended: open, closed, killed, silent; views say down for silent with ended_ns")  \
    X(RUN_LAST_ACTIVITY, "last_activity", TEXT, NONE, MAYBE,                                       \
      "what the run last said it was doing")                                                       \
    X(RUN_WORKER_VERSION, "worker_version", TEXT, NONE, ALWAYS,                                    \
      "version of the reporting program")                                                          \
    X(RUN_PROTOCOL, "protocol", INT, NONE, ALWAYS, "protocol version the run speaks")              \
    X(RUN_OS, "os", TEXT, NONE, ALWAYS, "operating system")                                        \
    X(RUN_KERNEL, "kernel", TEXT, NONE, ALWAYS, "kernel release")                                  \
    X(RUN_CPU, "cpu", TEXT, NONE, ALWAYS, "processor's model name")                                \
    X(RUN_CPU_COUNT, "cpu_count", INT, COUNT, ALWAYS, "processors the process may use")            \
    X(RUN_CPU_GOVERNOR, "cpu_governor", TEXT, NONE, MAYBE, "frequency governor of processor 0")    \
    X(RUN_HOST_MEMORY_BYTES, "host_memory_bytes", INT, BYTES, ALWAYS, "memory of the host")        \
    X(RUN_CONTAINER, "container", TEXT, NONE, MAYBE, "kind of container the process runs in")      \
    X(RUN_DEVICE_COUNT, "device_count", INT, COUNT, ALWAYS, "devices the run reports")             \
    X(RUN_DRIVER, "driver", TEXT, NONE, MAYBE, "GPU driver's version")                             \
    X(RUN_CUDA, "cuda", TEXT, NONE, MAYBE,                                                         \
      "version of the CUDA runtime in the reporting program, where an NVIDIA driver is loaded")    \
    X(RUN_CLOCK_OFFSET_NS, "clock_offset_ns", INT, DURATION, MAYBE,                                \
      "host's clock less the collector's, estimated")                                              \
    X(RUN_CLOCK_ERROR_NS, "clock_error_ns", INT, DURATION, MAYBE,                                  \
      "bound of that estimate's error")                                                            \
    X(RUN_PRODUCED, "produced", INT, COUNT, ALWAYS, "records the producer says it made")           \
    X(RUN_STORED, "stored", INT, COUNT, ALWAYS, "records of the run stored")                       \
    X(RUN_DUPLICATES, "duplicates", INT, COUNT, ALWAYS, "repeated records skipped")                \
    X(RUN_HUGE_PAGES, "huge_pages", TEXT, NONE, MAYBE,                                             \
      "transparent huge pages (always, madvise, never), and reserved ones where there are any")    \
    X(RUN_ALLOCATOR, "allocator", TEXT, NONE, MAYBE, "whose malloc the process uses")              \
    X(RUN_BUILD_FLAGS, "build_flags", TEXT, NONE, MAYBE,                                           \
      "compiler, build type and flags of the reporting program's libinferstat")

#define RECORD_DEVICE(X)                                                                           \
    X(DEVICE_ORDINAL, "ordinal", INT, NONE, ALWAYS, "the device's place in its run, from 0")       \
    X(DEVICE_NAME, "name", NAME, NONE, ALWAYS, "the device's name")                                \
    X(DEVICE_UUID, "uuid", TEXT, NONE, MAYBE, "the device's own identity")                         \
    X(DEVICE_MEMORY_BYTES, "memory_bytes", INT, BYTES, MAYBE, "memory on the device")              \
    X(DEVICE_COMPUTE_CAPABILITY, "compute_capability", TEXT, NONE, MAYBE,                          \
      "CUDA compute capability")                                                                   \
    X(DEVICE_PCIE_GENERATION, "pcie_generation", INT, NONE, MAYBE, "PCIe generation negotiated")   \
    X(DEVICE_PCIE_WIDTH, "pcie_width", INT, NONE, MAYBE, "PCIe lanes negotiated")                  \
    X(DEVICE_PCIE_GENERATION_MAX, "pcie_generation_max", INT, NONE, MAYBE,                         \
      "PCIe generation at best")                                                                   \
    X(DEVICE_PCIE_WIDTH_MAX, "pcie_width_max", INT, NONE, MAYBE, "PCIe lanes at best")             \
    X(DEVICE_MEMORY_BANDWIDTH, "memory_bandwidth_bytes_per_second", REAL, BYTES_PER_SECOND, MAYBE, \
      "measured bandwidth of the device's memory")                                                 \
    X(DEVICE_H2D, "h2d_bytes_per_second", REAL, BYTES_PER_SECOND, MAYBE,                           \
      "measured host-to-device bandwidth")                                                         \
    X(DEVICE_FLOPS, "flops_per_second", REAL, FLOPS, MAYBE, "measured arithmetic rate")            \
    X(DEVICE_POWER_CAP, "power_cap_watts", REAL, WATTS, MAYBE, "most power it may draw")           \
    X(DEVICE_SM_CLOCK_MAX, "sm_clock_max_hz", INT, HERTZ, MAYBE,                                   \
      "highest clock the multiprocessors may have")                                                \
    X(DEVICE_MEMORY_CLOCK_MAX, "memory_clock_max_hz", INT, HERTZ, MAYBE,                           \
      "highest clock the memory may have")                                                         \
    X(DEVICE_SLOWDOWN, "slowdown_celsius", REAL, CELSIUS, MAYBE,                                   \
      "temperature at which it slows down")                                                        \
    X(DEVICE_PARENT_UUID, "parent_uuid", TEXT, NONE, MAYBE,                                        \
      "of a MIG instance: the identity of its GPU")

#define RECORD_MODEL(X)                                                                            \
    X(MODEL_NAME, "name", NAME, NONE, ALWAYS, "the model's name")                                  \
    X(MODEL_DIGEST, "digest", TEXT, NONE, MAYBE, "digest of the model's file")                     \
    X(MODEL_FORMAT, "format", TEXT, NONE, ALWAYS, "file format (gguf)")                            \
    X(MODEL_ARCHITECTURE, "architecture", TEXT, NONE, MAYBE, "architecture (llama)")               \
    X(MODEL_QUANTISATION, "quantisation", TEXT, NONE, MAYBE, "type of most weights (f16)")         \
    X(MODEL_PARAMETERS, "parameters", INT, COUNT, MAYBE, "number of weights")                      \
    X(MODEL_FILE_BYTES, "file_bytes", INT, BYTES, MAYBE, "size of the model's file")               \
    X(MODEL_CONTEXT, "context", INT, TOKENS, MAYBE, "longest context in tokens")                   \
    X(MODEL_KV_BYTES, "kv_bytes_per_token", INT, BYTES, MAYBE,                                     \
      "bytes of KV cache of a position, which each later token reads")                             \
    X(MODEL_WEIGHT_BYTES, "weight_bytes_per_token", INT, BYTES, MAYBE,                             \
      "bytes of weights that a token reads: all but a table of which it looks up a row")

#define RECORD_STARTUP(X)                                                                          \
    X(STARTUP_DURATION_NS, "duration_ns", INT, DURATION, ALWAYS, "from the start until ready")     \
    X(STARTUP_MEMORY_START_BYTES, "memory_start_bytes", INT, BYTES, ALWAYS,                        \
      "host memory of the process at the start")                                                   \
    X(STARTUP_MEMORY_READY_BYTES, "memory_ready_bytes", INT, BYTES, ALWAYS,                        \
      "host memory of the process when ready")

#define RECORD_LOAD(X)                                                                             \
    X(LOAD_MODEL, "model", NAME, NONE, ALWAYS, "the model loaded")                                 \
    X(LOAD_DEVICE, "device", NAME, NONE, ALWAYS, "the device it was loaded to")                    \
    X(LOAD_DURATION_NS, "duration_ns", INT, DURATION, ALWAYS,                                      \
      "whole load, all stages and the rest")                                                       \
    X(LOAD_STATUS, "status", STATUS, NONE, ALWAYS, "ok, error, cancelled")                         \
    X(LOAD_ERROR, "error", TEXT, NONE, MAYBE, "why it failed")                                     \
    X(LOAD_MODEL_BYTES, "model_bytes", INT, BYTES, ALWAYS, "bytes of weights loaded")              \
    X(LOAD_HOST_MEMORY_BEFORE, "host_memory_before_bytes", INT, BYTES, ALWAYS,                     \
      "host memory of the process before the load")                                                \
    X(LOAD_HOST_MEMORY_AFTER, "host_memory_after_bytes", INT, BYTES, ALWAYS,                       \
      "host memory of the process after the load")                                                 \
    X(LOAD_DEVICE_MEMORY_BEFORE, "device_memory_before_bytes", INT, BYTES, MAYBE,                  \
      "device memory in use before the load")                                                      \
    X(LOAD_DEVICE_MEMORY_AFTER, "device_memory_after_bytes", INT, BYTES, MAYBE,                    \
      "device memory in use after the load")                                                       \
    X(LOAD_STORAGE_RATE, "storage_bytes_per_second", REAL, BYTES_PER_SECOND, MAYBE,                \
      "rate at which storage delivered the file")                                                  \
    X(LOAD_H2D_RATE, "h2d_bytes_per_second", REAL, BYTES_PER_SECOND, MAYBE,                        \
      "rate of copies to the device")                                                              \
    X(LOAD_PAGE_CACHE_RATIO, "page_cache_ratio", REAL, RATIO, MAYBE,                               \
      "share of the file that was in the page cache at the start")

#define RECORD_LOAD_STAGE(X)                                                                       \
    X(LOAD_STAGE_PARENT, "parent", INT, NONE, ALWAYS,                                              \
      "number of the load or startup in the same stream")                                          \
    X(LOAD_STAGE_ORDINAL, "ordinal", INT, NONE, ALWAYS, "place among its siblings, from 0")        \
    X(LOAD_STAGE_STAGE, "stage", NAME, NONE, ALWAYS, "the stage's name")                           \
    X(LOAD_STAGE_DURATION_NS, "duration_ns", INT, DURATION, ALWAYS, "how long the stage took")

#define RECORD_INFERENCE(X)                                                                        \
    X(INFERENCE_MODEL, "model", NAME, NONE, ALWAYS, "the model that answered")                     \
    X(INFERENCE_DEVICE, "device", NAME, NONE, ALWAYS, "the device it ran on")                      \
    X(INFERENCE_REQUEST, "request", INT, NONE, ALWAYS, "the engine's number of the request")       \
    X(INFERENCE_FINISH, "finish", FINISH, NONE, ALWAYS, "stop, length, cancelled, error")          \
    X(INFERENCE_PROMPT_TOKENS, "prompt_tokens", INT, TOKENS, MAYBE,                                \
      "tokens of the prompt; like all tokens absent where a model makes none")                     \
    X(INFERENCE_CACHED_PROMPT_TOKENS, "cached_prompt_tokens", INT, TOKENS, MAYBE,                  \
      "of those, taken from a cache and not computed")                                             \
    X(INFERENCE_GENERATED_TOKENS, "generated_tokens", INT, TOKENS, MAYBE, "tokens put out")        \
    X(INFERENCE_QUEUE_NS, "queue_ns", INT, DURATION, ALWAYS, "arrival to start of computing")      \
    X(INFERENCE_PREFILL_NS, "prefill_ns", INT, DURATION, MAYBE,                                    \
      "start of computing the prompt to the first token")                                          \
    X(INFERENCE_TTFT_NS, "ttft_ns", INT, DURATION, MAYBE, "arrival to the first token")            \
    X(INFERENCE_DECODE_NS, "decode_ns", INT, DURATION, MAYBE, "first to last token")               \
    X(INFERENCE_E2E_NS, "e2e_ns", INT, DURATION, ALWAYS, "arrival to the last token or result")    \
    X(INFERENCE_ITL_MAX_NS, "itl_max_ns", INT, DURATION, MAYBE, "longest gap between two tokens")  \
    X(INFERENCE_ITL_P99_NS, "itl_p99_ns", INT, DURATION, MAYBE,                                    \
      "99th percentile of the gaps between tokens (1 % relative error)")                           \
    X(INFERENCE_HOST_MEMORY, "host_memory_bytes", INT, BYTES, ALWAYS,                              \
      "host memory of the process, last sampled")                                                  \
    X(INFERENCE_DEVICE_MEMORY, "device_memory_bytes", INT, BYTES, MAYBE,                           \
      "device memory in use, last sampled")                                                        \
    X(INFERENCE_CONCURRENT, "concurrent_requests", INT, COUNT, MAYBE,                              \
      "requests in progress when this one ended, itself included; other threads' of 25 ms ago")    \
    X(INFERENCE_ERROR, "error", TEXT, NONE, MAYBE, "why it failed")                                \
    X(INFERENCE_ITEMS, "items", INT, COUNT, MAYBE,                                                 \
      "items of the batch (images, windows of sound), of a model that makes no tokens")

#define RECORD_ITL(X)                                                                              \
    X(ITL_MODEL, "model", NAME, NONE, ALWAYS, "the model that answered")                           \
    X(ITL_DEVICE, "device", NAME, NONE, ALWAYS, "the device it ran on")                            \
    X(ITL_DURATION_NS, "duration_ns", INT, DURATION, ALWAYS, "length of the span")                 \
    X(ITL_SKETCH, "sketch", BLOB, NONE, ALWAYS,                                                    \
      "the gaps in nanoseconds as a mergeable sketch (proto/inferstat.proto)")

#define RECORD_OPERATION(X)                                                                        \
    X(OPERATION_OPERATION, "operation", NAME, NONE, ALWAYS, "the operation's name")                \
    X(OPERATION_DEVICE, "device", NAME, NONE, MAYBE, "the device it ran on")                       \
    X(OPERATION_DURATION_NS, "duration_ns", INT, DURATION, ALWAYS, "how long it took")             \
    X(OPERATION_HOST_MEMORY, "host_memory_bytes", INT, BYTES, MAYBE,                               \
      "host memory of the process, last sampled")                                                  \
    X(OPERATION_ITEMS, "items", INT, COUNT, MAYBE, "items worked on")                              \
    X(OPERATION_BYTES, "bytes", INT, BYTES, MAYBE, "bytes worked on")                              \
    X(OPERATION_EXTRA, "extra", TEXT, NONE, MAYBE, "anything else, as short JSON text")            \
    X(OPERATION_ERROR, "error", TEXT, NONE, MAYBE, "why it failed")

#define RECORD_PIPELINE(X)                                                                         \
    X(PIPELINE_WORKLOAD, "workload", NAME, NONE, ALWAYS, "what streamed (such as encode)")         \
    X(PIPELINE_DEVICE, "device", NAME, NONE, ALWAYS, "the device it ran on")                       \
    X(PIPELINE_STATUS, "status", STATUS, NONE, ALWAYS, "ok, error, cancelled")                     \
    X(PIPELINE_ITEMS, "items", INT, COUNT, ALWAYS, "items worked on")                              \
    X(PIPELINE_DURATION_NS, "duration_ns", INT, DURATION, ALWAYS, "how long it took")              \
    X(PIPELINE_CHUNK_BYTES, "chunk_bytes", INT, BYTES, ALWAYS, "bytes of one chunk")               \
    X(PIPELINE_POOL_SIZE, "pool_size", INT, COUNT, ALWAYS, "pinned slots in the pool")             \
    X(PIPELINE_PREFETCH, "prefetch", INT, COUNT, ALWAYS, "chunks read ahead at most")              \
    X(PIPELINE_SYNC, "sync", SYNC, NONE, ALWAYS, "how slots are reused: events, periodic")         \
    X(PIPELINE_BYTES_H2D, "bytes_h2d", INT, BYTES, ALWAYS, "bytes copied to the device")           \
    X(PIPELINE_COPY_BUSY_NS, "copy_busy_ns", INT, DURATION, MAYBE, "time a copy ran")              \
    X(PIPELINE_COMPUTE_BUSY_NS, "compute_busy_ns", INT, DURATION, MAYBE, "time compute ran")       \
    X(PIPELINE_BOTH_BUSY_NS, "both_busy_ns", INT, DURATION, MAYBE, "time both ran at once")        \
    X(PIPELINE_EXPOSED_COPY_NS, "exposed_copy_ns", INT, DURATION, MAYBE,                           \
      "time a copy to the device ran and no compute did")                                          \
    X(PIPELINE_COPY_STARVED_NS, "copy_starved_ns", INT, DURATION, MAYBE,                           \
      "time no copy ran because no filled slot was ready, though there were slots to fill")        \
    X(PIPELINE_POOL_ACQUIRES, "pool_acquires", INT, COUNT, MAYBE, "slots acquired")                \
    X(PIPELINE_POOL_WAITS, "pool_waits", INT, COUNT, MAYBE, "acquires that had to wait")           \
    X(PIPELINE_POOL_WAIT_NS, "pool_wait_ns", INT, DURATION, MAYBE, "time those waited")            \
    X(PIPELINE_POOL_AVAILABLE_MIN, "pool_available_min", INT, COUNT, MAYBE, "fewest slots free")   \
    X(PIPELINE_POOL_AVAILABLE_MAX, "pool_available_max", INT, COUNT, MAYBE, "most slots free")     \
    X(PIPELINE_ITEM_P50_NS, "item_p50_ns", INT, DURATION, MAYBE,                                   \
      "median time of a batch (first copy to results)")                                            \
    X(PIPELINE_ITEM_P95_NS, "item_p95_ns", INT, DURATION, MAYBE, "95th percentile of a batch")     \
    X(PIPELINE_ITEM_P99_NS, "item_p99_ns", INT, DURATION, MAYBE, "99th percentile of a batch")     \
    X(PIPELINE_UNMEASURED_CHUNKS, "unmeasured_chunks", INT, COUNT, MAYBE,                          \
      "chunks whose times could not be taken")                                                     \
    X(PIPELINE_MODEL, "model", NAME, NONE, MAYBE, "what was loaded, or encoded with")              \
    X(PIPELINE_BATCH_ITEMS, "batch_items", INT, COUNT, MAYBE, "items of one batch")                \
    X(PIPELINE_IDLE_NS, "idle_ns", INT, DURATION, MAYBE,                                           \
      "time neither a copy nor compute ran, between the first and the last of them")               \
    X(PIPELINE_WAITS_64US, "pool_waits_below_64us", INT, COUNT, MAYBE,                             \
      "of pool_waits, those of under 64 us")                                                       \
    X(PIPELINE_WAITS_4096US, "pool_waits_below_4096us", INT, COUNT, MAYBE,                         \
      "of pool_waits, those of under 4.096 ms")                                                    \
    X(PIPELINE_SOURCE, "source", NAME, NONE, MAYBE,                                                \
      "where its items came from: generator, pageable, pinned, file")

// A sample of a device or host describes the period from started_ns to started_ns + duration_ns.
// Shares, rates and used energy are those of the period; all else (memory in use, temperature,
// clocks, throttle reasons, counters since the driver's start) is as read at its end, and stands
// for the whole period.  The first sample of a run has no duration: it was read at started_ns, and
// is valid until the run's next one; so are those of older producers.
#define RECORD_DEVICE_SAMPLE(X)                                                                    \
    X(DEVICE_SAMPLE_DEVICE, "device", NAME, NONE, ALWAYS, "the device sampled")                    \
    X(DEVICE_SAMPLE_GPU_UTIL, "gpu_util_ratio", REAL, RATIO, MAYBE,                                \
      "share of the period in which at least one kernel ran")                                      \
    X(DEVICE_SAMPLE_MEMORY_USED, "memory_used_bytes", INT, BYTES, MAYBE, "device memory in use")   \
    X(DEVICE_SAMPLE_TEMPERATURE, "temperature_celsius", REAL, CELSIUS, MAYBE, "temperature")       \
    X(DEVICE_SAMPLE_POWER, "power_watts", REAL, WATTS, MAYBE, "power drawn")                       \
    X(DEVICE_SAMPLE_ENERGY, "energy_joules", REAL, JOULES, MAYBE,                                  \
      "energy used since the driver's start")                                                      \
    X(DEVICE_SAMPLE_SM_CLOCK, "sm_clock_hz", INT, HERTZ, MAYBE, "clock of the multiprocessors")    \
    X(DEVICE_SAMPLE_MEMORY_CLOCK, "memory_clock_hz", INT, HERTZ, MAYBE, "clock of the memory")     \
    X(DEVICE_SAMPLE_PCIE_GENERATION, "pcie_generation", INT, COUNT, MAYBE, "PCIe generation now")  \
    X(DEVICE_SAMPLE_PCIE_WIDTH, "pcie_width", INT, COUNT, MAYBE, "PCIe lanes now")                 \
    X(DEVICE_SAMPLE_THROTTLE, "throttle_reasons", INT, NONE, MAYBE,                                \
      "NVML's bits of why clocks are held back")                                                   \
    X(DEVICE_SAMPLE_SM_ACTIVE, "sm_active_ratio", REAL, RATIO, MAYBE,                              \
      "share of multiprocessors busy")                                                             \
    X(DEVICE_SAMPLE_DRAM_ACTIVE, "dram_active_ratio", REAL, RATIO, MAYBE,                          \
      "share of time memory was busy")                                                             \
    X(DEVICE_SAMPLE_DURATION_NS, "duration_ns", INT, DURATION, MAYBE, "length of the period")      \
    X(DEVICE_SAMPLE_ENERGY_USED, "energy_used_joules", REAL, JOULES, MAYBE,                        \
      "energy used in the period: by the energy counter, of devices without one power x time")     \
    X(DEVICE_SAMPLE_MEMORY_TOTAL, "memory_total_bytes", INT, BYTES, MAYBE,                         \
      "device memory there is")                                                                    \
    X(DEVICE_SAMPLE_MEMORY_RESERVED, "memory_reserved_bytes", INT, BYTES, MAYBE,                   \
      "device memory that driver and firmware keep for themselves")                                \
    X(DEVICE_SAMPLE_MEMORY_UTIL, "memory_util_ratio", REAL, RATIO, MAYBE,                          \
      "share of the period in which device memory was read or written")                            \
    X(DEVICE_SAMPLE_MEMORY_TEMPERATURE, "memory_temperature_celsius", REAL, CELSIUS, MAYBE,        \
      "temperature of the memory")                                                                 \
    X(DEVICE_SAMPLE_POWER_LIMIT, "power_limit_watts", REAL, WATTS, MAYBE,                          \
      "most power it may draw now")                                                                \
    X(DEVICE_SAMPLE_FAN, "fan_ratio", REAL, RATIO, MAYBE, "speed of the fan / its highest speed")  \
    X(DEVICE_SAMPLE_ENCODER_UTIL, "encoder_util_ratio", REAL, RATIO, MAYBE,                        \
      "share of the period in which the video encoder was busy")                                   \
    X(DEVICE_SAMPLE_DECODER_UTIL, "decoder_util_ratio", REAL, RATIO, MAYBE,                        \
      "share of the period in which the video decoder was busy")                                   \
    X(DEVICE_SAMPLE_PCIE_RX, "pcie_rx_bytes_per_second", REAL, BYTES_PER_SECOND, MAYBE,            \
      "bytes the device received over PCIe; not in every sample")                                  \
    X(DEVICE_SAMPLE_PCIE_TX, "pcie_tx_bytes_per_second", REAL, BYTES_PER_SECOND, MAYBE,            \
      "bytes the device sent over PCIe; not in every sample")                                      \
    X(DEVICE_SAMPLE_ECC_CORRECTED, "ecc_corrected", INT, COUNT, MAYBE,                             \
      "memory errors corrected since the driver's start")                                          \
    X(DEVICE_SAMPLE_ECC_UNCORRECTED, "ecc_uncorrected", INT, COUNT, MAYBE,                         \
      "memory errors since the driver's start that could not be corrected")                        \
    X(DEVICE_SAMPLE_RETIRED_PAGES, "retired_pages", INT, COUNT, MAYBE,                             \
      "pages of memory taken out of use for errors")                                               \
    X(DEVICE_SAMPLE_REMAPPED_ROWS, "remapped_rows", INT, COUNT, MAYBE,                             \
      "rows of memory replaced by spare ones for errors")                                          \
    X(DEVICE_SAMPLE_TENSOR_ACTIVE, "tensor_active_ratio", REAL, RATIO, MAYBE,                      \
      "share of time the tensor cores were busy")                                                  \
    X(DEVICE_SAMPLE_PROCESSES, "process_count", INT, COUNT, MAYBE, "processes with memory on it")

#define RECORD_PROCESS_SAMPLE(X)                                                                   \
    X(PROCESS_SAMPLE_CPU, "cpu_ratio", REAL, RATIO, ALWAYS,                                        \
      "processor time / wall time of the process; 2.0 is two processors busy")                     \
    X(PROCESS_SAMPLE_HOST_MEMORY, "host_memory_bytes", INT, BYTES, ALWAYS,                         \
      "host memory of the process (resident)")                                                     \
    X(PROCESS_SAMPLE_DEVICE_MEMORY, "device_memory_bytes", INT, BYTES, MAYBE,                      \
      "device memory of the process")                                                              \
    X(PROCESS_SAMPLE_RUNNING, "running_requests", INT, COUNT, MAYBE, "requests in progress")       \
    X(PROCESS_SAMPLE_WAITING, "waiting_requests", INT, COUNT, MAYBE,                               \
      "of those, not yet computed on")                                                             \
    X(PROCESS_SAMPLE_MODEL, "model", NAME, NONE, MAYBE,                                            \
      "the model whose requests this row counts; absent: all requests of the process")

#define RECORD_HOST_SAMPLE(X)                                                                      \
    X(HOST_SAMPLE_DURATION_NS, "duration_ns", INT, DURATION, MAYBE, "length of the period")        \
    X(HOST_SAMPLE_CPU_UTIL, "cpu_util_ratio", REAL, RATIO, MAYBE, "busy share of all processors")  \
    X(HOST_SAMPLE_LOAD_1M, "load_1m", REAL, COUNT, MAYBE,                                          \
      "load average of a minute: tasks that ran or waited")                                        \
    X(HOST_SAMPLE_CPU_FREQUENCY, "cpu_frequency_hz", INT, HERTZ, MAYBE,                            \
      "mean frequency of the processors")                                                          \
    X(HOST_SAMPLE_MEMORY_TOTAL, "memory_total_bytes", INT, BYTES, MAYBE, "memory of the host")     \
    X(HOST_SAMPLE_MEMORY_AVAILABLE, "memory_available_bytes", INT, BYTES, MAYBE,                   \
      "memory that programs could get without swapping")                                           \
    X(HOST_SAMPLE_SWAP_USED, "swap_used_bytes", INT, BYTES, MAYBE, "swap space in use")            \
    X(HOST_SAMPLE_CPU_PRESSURE, "cpu_pressure_ratio", REAL, RATIO, MAYBE,                          \
      "share of the period in which some task waited for a processor")                             \
    X(HOST_SAMPLE_MEMORY_PRESSURE, "memory_pressure_ratio", REAL, RATIO, MAYBE,                    \
      "share of the period in which some task waited for memory")                                  \
    X(HOST_SAMPLE_IO_PRESSURE, "io_pressure_ratio", REAL, RATIO, MAYBE,                            \
      "share of the period in which some task waited for I/O")                                     \
    X(HOST_SAMPLE_MEMORY_STALLED, "memory_stalled_ratio", REAL, RATIO, MAYBE,                      \
      "share of the period in which all tasks that could run waited for memory")                   \
    X(HOST_SAMPLE_IO_STALLED, "io_stalled_ratio", REAL, RATIO, MAYBE,                              \
      "share of the period in which all tasks that could run waited for I/O")                      \
    X(HOST_SAMPLE_DISK_READ, "disk_read_bytes_per_second", REAL, BYTES_PER_SECOND, MAYBE,          \
      "bytes read from disks")                                                                     \
    X(HOST_SAMPLE_DISK_WRITE, "disk_write_bytes_per_second", REAL, BYTES_PER_SECOND, MAYBE,        \
      "bytes written to disks")                                                                    \
    X(HOST_SAMPLE_DISK_BUSY, "disk_busy_ratio", REAL, RATIO, MAYBE,                                \
      "share of the period in which the busiest disk worked")                                      \
    X(HOST_SAMPLE_NETWORK_RX, "network_rx_bytes_per_second", REAL, BYTES_PER_SECOND, MAYBE,        \
      "bytes received from the network")                                                           \
    X(HOST_SAMPLE_NETWORK_TX, "network_tx_bytes_per_second", REAL, BYTES_PER_SECOND, MAYBE,        \
      "bytes sent to the network")                                                                 \
    X(HOST_SAMPLE_NETWORK_ERRORS, "network_errors", INT, COUNT, MAYBE,                             \
      "packets that were lost or damaged in the period")                                           \
    X(HOST_SAMPLE_CGROUP_MEMORY_LIMIT, "cgroup_memory_limit_bytes", INT, BYTES, MAYBE,             \
      "memory that the process's control group may use")                                           \
    X(HOST_SAMPLE_CGROUP_MEMORY_USED, "cgroup_memory_used_bytes", INT, BYTES, MAYBE,               \
      "memory that the process's control group uses")                                              \
    X(HOST_SAMPLE_CGROUP_CPU_QUOTA, "cgroup_cpu_quota", REAL, COUNT, MAYBE,                        \
      "processors that the process's control group may use")                                       \
    X(HOST_SAMPLE_CGROUP_THROTTLED, "cgroup_throttled_ratio", REAL, RATIO, MAYBE,                  \
      "share of the quota's periods in which the control group was held back")

// All processes of a device are recorded together, with the same started_ns: when the set changes,
// and once a minute.
#define RECORD_DEVICE_PROCESS(X)                                                                   \
    X(DEVICE_PROCESS_DEVICE, "device", NAME, NONE, ALWAYS, "the device")                           \
    X(DEVICE_PROCESS_PID, "pid", INT, NONE, ALWAYS, "process id on the host")                      \
    X(DEVICE_PROCESS_NAME, "name", TEXT, NONE, MAYBE,                                              \
      "the process's name, as the kernel tells it")                                                \
    X(DEVICE_PROCESS_MEMORY, "memory_bytes", INT, BYTES, MAYBE, "device memory of the process")

// An event that lasts is recorded twice: when it begins, without duration, and when it has ended,
// with the same started_ns.  One of a moment is recorded once, with duration 0.
#define RECORD_EVENT(X)                                                                            \
    X(EVENT_EVENT, "event", NAME, NONE, ALWAYS,                                                    \
      "what happened: throttling, xid, pcie_downgrade, ecc_corrected, ecc_uncorrected, "           \
      "memory_pressure, cgroup_throttled, foreign_process, driver_hang, device_lost")              \
    X(EVENT_DEVICE, "device", NAME, NONE, MAYBE, "the device; absent: the host")                   \
    X(EVENT_DURATION_NS, "duration_ns", INT, DURATION, MAYBE,                                      \
      "how long it lasted; absent: it had not ended yet")                                          \
    X(EVENT_CODE, "code", INT, NONE, MAYBE,                                                        \
      "throttling: all bits seen; xid: its number; pcie_downgrade: lanes; ecc: errors; "           \
      "foreign_process: its pid")                                                                  \
    X(EVENT_DETAIL, "detail", TEXT, NONE, MAYBE, "the same in words")

// Enumerations: X(number on the wire and in tables, NAME, "text in views").  A run's end is
//   open    no end is known: the run goes on
//   closed  the process ended the run
//   killed  the process died; another process sent what it left
//   silent  no end is known, but no message has arrived for 10 s; or, if it has an ended_ns, its
//           process ended then without closing the run: its connection closed and stayed closed
// `sync`: slots are reused after the event of their own copy, or after periodic synchronisation.
#define RECORD_STATUS_VALUES(X) X(0, OK, "ok") X(1, ERROR, "error") X(2, CANCELLED, "cancelled")
#define RECORD_FINISH_VALUES(X)                                                                    \
    X(0, STOP, "stop") X(1, LENGTH, "length") X(2, CANCELLED, "cancelled") X(3, ERROR, "error")
#define RECORD_RUN_END_VALUES(X)                                                                   \
    X(0, OPEN, "open") X(1, CLOSED, "closed") X(2, KILLED, "killed") X(3, SILENT, "silent")
#define RECORD_SYNC_VALUES(X) X(0, EVENTS, "events") X(1, PERIODIC, "periodic")

// Derived metrics are never stored: views and queries compute numerator / denominator in real
// arithmetic.  The value is absent if either is absent or the denominator is not above zero.  Both
// are expressions in SQL over the kind's columns.  An average has two forms: "per request" is the
// mean of the rows' values; "total over total" is sum(numerator) / sum(denominator) of the rows
// that have a value.
//
// X(KIND, "name", unit, "numerator", "denominator", "meaning")
#define RECORD_DERIVED(X)                                                                          \
    X(INFERENCE, "tokens_per_second", TOKENS_PER_SECOND, "(generated_tokens - 1) * 1e9",           \
      "CASE WHEN generated_tokens >= 2 THEN decode_ns END",                                        \
      "the user's speed: tokens after the first / decode time")                                    \
    X(INFERENCE, "output_tokens_per_second", TOKENS_PER_SECOND, "generated_tokens * 1e9",          \
      "e2e_ns", "generated tokens / end-to-end time")                                              \
    X(INFERENCE, "prefill_tokens_per_second", TOKENS_PER_SECOND,                                   \
      "(prompt_tokens - cached_prompt_tokens) * 1e9", "prefill_ns",                                \
      "prompt tokens computed / prefill time")                                                     \
    X(INFERENCE, "tpot_ns", DURATION, "e2e_ns - ttft_ns",                                          \
      "CASE WHEN generated_tokens >= 2 THEN generated_tokens - 1 END",                             \
      "time per output token after the first")                                                     \
    X(LOAD, "memory_delta_bytes", BYTES, "host_memory_after_bytes - host_memory_before_bytes",     \
      "1", "host memory the load added (negative when it freed some)")                             \
    X(LOAD, "load_bytes_per_second", BYTES_PER_SECOND, "model_bytes * 1e9",                        \
      "CASE WHEN status = 0 THEN duration_ns END", "bytes of weights / load's duration")           \
    X(STARTUP, "memory_delta_bytes", BYTES, "memory_ready_bytes - memory_start_bytes", "1",        \
      "host memory added until ready")                                                             \
    X(PIPELINE, "overlap_ratio", RATIO, "both_busy_ns", "min(copy_busy_ns, compute_busy_ns)",      \
      "time copy and compute ran at once / the shorter of the two")                                \
    X(PIPELINE, "pool_starvation_ratio", RATIO, "pool_waits", "pool_acquires",                     \
      "acquires that had to wait / acquires")                                                      \
    X(PIPELINE, "items_per_second", ITEMS_PER_SECOND, "items * 1e9",                               \
      "CASE WHEN items > 0 THEN duration_ns END", "items / time; absent where none was worked on") \
    X(OPERATION, "items_per_second", ITEMS_PER_SECOND, "items * 1e9", "duration_ns",               \
      "items / time")                                                                              \
    X(INFERENCE, "items_per_second", ITEMS_PER_SECOND, "items * 1e9", "e2e_ns",                    \
      "items of the batch / end-to-end time")                                                      \
    X(DEVICE_SAMPLE, "memory_used_ratio", RATIO, "memory_used_bytes", "memory_total_bytes",        \
      "device memory in use / device memory there is")                                             \
    X(DEVICE_SAMPLE, "throttled_ratio", RATIO,                                                     \
      "CASE WHEN throttle_reasons & 252 > 0 THEN 1 ELSE 0 END",                                    \
      "CASE WHEN throttle_reasons >= 0 THEN 1 END",                                                \
      "1 if clocks were held back, else 0: the mean is the share of samples")                      \
    X(HOST_SAMPLE, "memory_used_ratio", RATIO, "memory_total_bytes - memory_available_bytes",      \
      "memory_total_bytes", "memory that is not available / memory of the host")                   \
    X(EVENT, "xid_count", COUNT, "1", "(SELECT n.text = 'xid' FROM name n WHERE n.id = event)",    \
      "1 of each XID error that the driver reported: the count is their number")
