// Compute device abstraction over the CPU and CUDA back ends: opens devices, allocates tensors, and
// computes the operations of a language model.  stream.h has streams and asynchronous copies.
//
// The thread that opened a device makes all calls of this header unless stated otherwise.
// Operations take effect in call order.  An operation on tensors of mismatched shapes fails with
// STATUS_INVALID and computes nothing.
//
// Operations are deterministic: with the same shapes the results are bitwise the same in every run.
// On the CPU a row's result is also the same for any number of threads and any other rows.  On CUDA
// it may differ with the number of rows, by at most 1e-3 of its size.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/device/tensor_types.h"

struct device;

struct device_stream; // stream.h
struct device_event;

enum device_event_kind {
    DEVICE_EVENT_ORDER, // orders work; has no timestamp
    DEVICE_EVENT_TIMED, // has a timestamp as well
};

// ---- Choosing and opening -------------------------------------------------

enum {
    DEVICE_NAME_SIZE = 64,
    DEVICE_REASON_SIZE = 160,
    DEVICE_CPU_MAX = 16, // number of CPU devices: cpu:0 to cpu:15
};

struct device_options {
    const char *spec;     // "auto", "cpu", "cpu:N", "cuda" or "cuda:N"; NULL is "auto"
    unsigned int threads; // of the CPU back end, at most 1024; 0: one per usable processor
    bool spin;            // a thread that waits for an event (stream.h) spins instead of sleeping
};

// Opens the device that options->spec names.  "auto" tries CUDA first, then CPU.  "cpu" means
// "cpu:0" and "cuda" means "cuda:0".  The name of "cpu:0" in records is "cpu".  The devices "cpu:1"
// to "cpu:15" use the same processors, each with its own streams and threads.  Fails with
// STATUS_INVALID if the spec is any other or there are too many threads, STATUS_UNSUPPORTED if the
// back end is not part of this build, STATUS_NOT_FOUND if the host has no such CUDA device.  Copies
// `*options`.
MUST_CHECK enum status device_open(struct device **out, const struct device_options *options,
                                   struct error *err);

// Closes the device.  Its tensors, streams, events and memory must have been freed.  Accepts NULL.
void device_close(struct device *device);

enum { DEVICE_LIST_MAX = 16, DEVICE_SPEC_SIZE = 48 };

// The devices that the user named, as in "cuda:0,1".
struct device_list {
    unsigned int count;                            // at least 1
    char specs[DEVICE_LIST_MAX][DEVICE_SPEC_SIZE]; // each for device_open
};

// Splits a list BACKEND:N,N,... into one spec per device; copies a `spec` without a comma; NULL is
// "auto".  Fails with STATUS_INVALID if the list is malformed, names a back end that does not exist
// or a device twice, or has more than DEVICE_LIST_MAX devices.  Opens none: see device_open.
MUST_CHECK enum status device_list_parse(struct device_list *out, const char *spec,
                                         struct error *err);

struct device_description {
    char name[DEVICE_NAME_SIZE];     // the name in records: "cpu", "cpu:1", "cuda:0"
    char reason[DEVICE_REASON_SIZE]; // why the device was chosen, for the log
    bool fell_back;                  // "auto" failed to open another device first
    char kernels[DEVICE_NAME_SIZE];  // instruction set of the kernels: "avx2", "plain C"
    unsigned int ordinal;
    unsigned int threads;
    int64_t memory_bytes;                   // total; 0: unknown
    int64_t memory_available_bytes;         // free now; negative: unknown
    char memory_cgroup[DEVICE_REASON_SIZE]; // the cgroup that limits it; "": none
    size_t head_size_max;                   // maximum head size of device_attention; 0: no limit
};

void device_describe(const struct device *device, struct device_description *out);

// Writes the version of the CUDA runtime in this build, such as "12.8", to `out` and returns `out`;
// "" in a build without CUDA.
const char *device_cuda_version(char out[DEVICE_NAME_SIZE]);

// Bytes currently allocated for tensors and by device_memory_new.  Any thread.
int64_t device_memory_used(const struct device *device);

// ---- Tensors --------------------------------------------------------------

// A dense row-major matrix in a device's memory.  A vector is a matrix of one row.  `data` is a
// device address, which the host must not dereference.
struct tensor {
    enum tensor_type type;
    size_t rows, columns;
    void *data;
};

// True if device_embed and device_matmul take weights of the type on this device.
bool device_computes(const struct device *device, enum tensor_type type);

// Bytes of the tensor's elements.
size_t tensor_bytes(const struct tensor *tensor);

// Allocates a zeroed tensor.  Fails with STATUS_INVALID if it would be empty, its size overflows,
// or its columns are no whole blocks of the type, or with STATUS_NOMEM.
MUST_CHECK enum status device_tensor_new(struct device *device, struct tensor *out,
                                         enum tensor_type type, size_t rows, size_t columns,
                                         struct error *err);

// Frees the tensor's memory and zeroes `*tensor`.  Accepts a zeroed tensor.
void device_tensor_free(struct device *device, struct tensor *tensor);

// Returns a view of rows first..first + count - 1 of `tensor`, which must exist.  The view shares
// the memory of `tensor` and must not be freed.
struct tensor tensor_rows(const struct tensor *tensor, size_t first, size_t count);

// Copy `size` bytes from the host to byte `offset` of the tensor, and from the tensor to the host.
// Host memory may be reused when the call returns.
MUST_CHECK enum status device_upload(struct device *device, struct tensor *tensor, size_t offset,
                                     const void *from, size_t size, struct error *err);
MUST_CHECK enum status device_download(struct device *device, void *to, const struct tensor *tensor,
                                       size_t offset, size_t size, struct error *err);

// ---- Operations -----------------------------------------------------------
// Shapes are (rows, columns); n is the number of positions computed at once, h the number of
// elements of a head (columns / heads).  Everything is F32 unless stated otherwise.

// Embedding lookup: out[r] = table[ids[r]], widened to F32.  `table` (vocabulary, dim) of a type
// that the device computes with, `out` (n, dim).  `ids` holds n token ids in host memory, each
// checked against the vocabulary.
MUST_CHECK enum status device_embed(struct device *device, struct tensor *out,
                                    const struct tensor *table, const uint32_t *ids, size_t n,
                                    struct error *err);

// out[r][o] = sum_i in[r][i] * weight[o][i].  `in` (n, k), `weight` (m, k) of a type that the
// device computes with, `out` (n, m), not overlapping `in`.  With a block-quantised weight the CPU
// rounds `in` to blocks of 32 integers of 8 bits.
MUST_CHECK enum status device_matmul(struct device *device, struct tensor *out,
                                     const struct tensor *in, const struct tensor *weight,
                                     struct error *err);

// out[r][i] = in[r][i] / sqrt(mean(in[r]^2) + epsilon) * weight[i].  `in` and
// `out` (n, k), may be the same; `weight` (1, k) F32.  RMSNorm, arXiv:1910.07467.
MUST_CHECK enum status device_rms_norm(struct device *device, struct tensor *out,
                                       const struct tensor *in, const struct tensor *weight,
                                       float epsilon, struct error *err);

// Elements of a head that device_rope rotates together, of the first d.
enum rope_pairs {
    ROPE_ADJACENT, // 2p and 2p + 1
    ROPE_HALVES,   // p and p + d / 2
};

// Rotates pair p of every head of row r by the angle whose cosine and sine are
// table[position + r][2p] and [2p+1].  `x` (n, heads * h), `table` (positions, d) with d <= h
// even; elements past d of a head stay.  Rotary embedding, arXiv:2104.09864.
MUST_CHECK enum status device_rope(struct device *device, struct tensor *x,
                                   const struct tensor *table, size_t position, size_t heads,
                                   enum rope_pairs pairs, struct error *err);

// Causal attention: row r of `query` attends to rows 0..position + r of the
// caches `keys` and `values`, of those only to the last `window` unless it is 0.  `query` and
// `out` (n, heads * h); `keys` and `values` (capacity, kv_heads * h); head i uses key/value head
// i / (heads / kv_heads).
//   out = softmax(query . keys / sqrt(h)) . values
// Fails with STATUS_UNSUPPORTED when h exceeds the device's head_size_max.
// Grouped-query attention, arXiv:2305.13245.
MUST_CHECK enum status device_attention(struct device *device, struct tensor *out,
                                        const struct tensor *query, const struct tensor *keys,
                                        const struct tensor *values, size_t position, size_t heads,
                                        size_t kv_heads, size_t window, struct error *err);

// gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i].  SwiGLU, arXiv:2002.05202.
MUST_CHECK enum status device_swiglu(struct device *device, struct tensor *gate,
                                     const struct tensor *up, struct error *err);

// x[r][i] += y[r][i].  `y` has the shape of `x`, or one row, which is added to every row.
MUST_CHECK enum status device_add(struct device *device, struct tensor *x, const struct tensor *y,
                                  struct error *err);

// x[rows[r]][i] += weights[r] * y[r][i].  `x` (m, k), `y` (n, k).  `rows` holds n different rows
// of `x` and `weights` n factors, both in host memory.
MUST_CHECK enum status device_scatter_add(struct device *device, struct tensor *x,
                                          const struct tensor *y, const uint32_t *rows,
                                          const float *weights, struct error *err);

// Waits for all earlier operations of this header; read the clock of a timing after it.  It does
// not wait for work on streams (stream.h).
MUST_CHECK enum status device_synchronize(struct device *device, struct error *err);
