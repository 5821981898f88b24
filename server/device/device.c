#include "server/device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/device/device_ops.h"

// ---- Choosing and opening -------------------------------------------------

#ifdef INFERSTAT_CUDA
#define CUDA_OPS (&device_cuda_ops)
#else
#define CUDA_OPS NULL
#endif

// Back ends in the order in which "auto" tries them.  `ops` is NULL where the
// back end is not part of this build.
static const struct backend {
    const char *name;
    const struct device_ops *ops;
    bool numbered; // the first one's name has its number too
} backends[] = {
    {.name = "cuda", .ops = CUDA_OPS, .numbered = true},
    {.name = "cpu", .ops = &device_cpu_ops},
};

enum {
    BACKEND_COUNT = sizeof backends / sizeof backends[0],
    NUMBER_DIGITS_MAX = 5, // of a device's number
};

// Splits "name" or "name:N".
static bool parse_spec(const char *spec, const struct backend **backend, unsigned int *ordinal)
{
    size_t length = strcspn(spec, ":");
    const struct backend *found = NULL;
    for (size_t i = 0; i < BACKEND_COUNT && !found; i++)
        if (strlen(backends[i].name) == length && strncmp(backends[i].name, spec, length) == 0)
            found = &backends[i];
    if (!found)
        return false;

    unsigned int number = 0;
    if (spec[length] == ':') {
        const char *digits = spec + length + 1;
        size_t count = strspn(digits, "0123456789");
        if (count == 0 || count > NUMBER_DIGITS_MAX || digits[count] != '\0')
            return false;
        number = (unsigned int)strtoul(digits, NULL, 10);
    }
    *backend = found;
    *ordinal = number;
    return true;
}

static enum status no_such_device(const char *spec, struct error *err)
{
    return error_set(err, STATUS_INVALID,
                     "device '%.40s': no such device (use auto, cpu, cuda or cuda:N)", spec);
}

static enum status open_backend(struct device **out, const struct backend *backend,
                                const struct device_options *options, unsigned int ordinal,
                                const char *why, struct error *err)
{
    struct device *device = NULL;
    enum status status = backend->ops->open(&device, options, ordinal, err);
    if (status != STATUS_OK)
        return status;
    device->ops = backend->ops;
    device->spin = options->spin;
    device->ordinal = ordinal;
    if (backend->numbered || ordinal > 0)
        (void)snprintf(device->name, sizeof device->name, "%s:%u", backend->name, ordinal);
    else
        (void)snprintf(device->name, sizeof device->name, "%s", backend->name);
    (void)snprintf(device->reason, sizeof device->reason, "%s", why);
    *out = device;
    return STATUS_OK;
}

// Length of "what was wrong: why", without the advice in parentheses.
static size_t reason_length(const char *text)
{
    enum { MOST = 120 };
    const char *advice = strstr(text, " (");
    size_t length = advice ? (size_t)(advice - text) : strlen(text);
    return length < MOST ? length : MOST;
}

// Opens the first back end of this build that can be opened; the reason says why earlier ones
// were not used.
static enum status open_first(struct device **out, const struct device_options *options,
                              struct error *err)
{
    enum status status = STATUS_UNSUPPORTED;
    bool refused = false;
    char why[DEVICE_REASON_SIZE] = "chosen by auto";
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        const struct backend *backend = &backends[i];
        struct error refusal = {0};
        if (backend->ops) {
            status = open_backend(out, backend, options, 0, why, &refusal);
            if (status == STATUS_OK) {
                (*out)->fell_back = refused;
                return status;
            }
            refused = true;
            // Without the advice, which addresses users who named that device.
            (void)snprintf(why, sizeof why, "chosen by auto (%.*s)",
                           (int)reason_length(refusal.text), refusal.text);
            (void)error_set(err, status, "%s", refusal.text);
        } else {
            (void)snprintf(why, sizeof why, "chosen by auto, as this build has no %s back end",
                           backend->name);
        }
    }
    return status;
}

const char *device_cuda_version(char out[DEVICE_NAME_SIZE])
{
#ifdef INFERSTAT_CUDA
    (void)snprintf(out, DEVICE_NAME_SIZE, "%d.%d", device_cuda_runtime / 1000,
                   device_cuda_runtime % 1000 / 10);
#else
    out[0] = '\0';
#endif
    return out;
}

enum status device_open(struct device **out, const struct device_options *options,
                        struct error *err)
{
    const char *spec = options->spec ? options->spec : "auto";
    if (strcmp(spec, "auto") == 0)
        return open_first(out, options, err);
    const struct backend *backend = NULL;
    unsigned int ordinal = 0;
    if (!parse_spec(spec, &backend, &ordinal))
        return no_such_device(spec, err);
    if (!backend->ops)
        return error_set(err, STATUS_UNSUPPORTED,
                         "device '%.40s': this build has no %s back end (use --device cpu)", spec,
                         backend->name);
    return open_backend(out, backend, options, ordinal, "asked for with --device", err);
}

static enum status add_device(struct device_list *list, const char *spec, size_t head,
                              const char *number, size_t digits, struct error *err)
{
    char one[DEVICE_SPEC_SIZE];
    if (list->count == DEVICE_LIST_MAX)
        return error_set(err, STATUS_INVALID, "device '%.40s': more than %d devices", spec,
                         DEVICE_LIST_MAX);
    while (digits > 1 && *number == '0') { // 00 is 0
        number++;
        digits--;
    }
    (void)snprintf(one, sizeof one, "%.*s%.*s", (int)head, spec, (int)digits, number);
    for (unsigned int i = 0; i < list->count; i++)
        if (strcmp(list->specs[i], one) == 0)
            return error_set(err, STATUS_INVALID, "device '%.40s': %s is named twice", spec, one);
    memcpy(list->specs[list->count++], one, sizeof one);
    return STATUS_OK;
}

enum status device_list_parse(struct device_list *out, const char *spec, struct error *err)
{
    *out = (struct device_list){.count = 0};
    const char *text = spec ? spec : "auto";
    const struct backend *backend;
    unsigned int ordinal;
    if (!strchr(text, ',')) {
        if (strcmp(text, "auto") != 0 && !parse_spec(text, &backend, &ordinal))
            return no_such_device(text, err);
        out->count = 1;
        (void)snprintf(out->specs[0], sizeof out->specs[0], "%s", text);
        return STATUS_OK;
    }
    size_t head = strcspn(text, ":,") + 1; // with its colon
    if (head == 1 || head > DEVICE_SPEC_SIZE / 2 || text[head - 1] != ':')
        return error_set(err, STATUS_INVALID,
                         "device '%.40s': no list of devices (use cuda:N,N,... or cpu:N,N,...)",
                         text);
    const char *at = text + head;
    for (;;) {
        size_t digits = strspn(at, "0123456789");
        if (digits == 0 || digits > NUMBER_DIGITS_MAX || (at[digits] != ',' && at[digits] != '\0'))
            return error_set(err, STATUS_INVALID,
                             "device '%.40s': behind the colon stand numbers with commas between "
                             "them",
                             text);
        enum status status = add_device(out, text, head, at, digits, err);
        if (status == STATUS_OK && !parse_spec(out->specs[0], &backend, &ordinal))
            status = no_such_device(text, err);
        if (status != STATUS_OK || at[digits] == '\0')
            return status;
        at += digits + 1;
    }
}

void device_close(struct device *device)
{
    if (device)
        device->ops->close(device);
}

void device_describe(const struct device *device, struct device_description *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out->name, device->name, sizeof out->name);
    out->ordinal = device->ordinal;
    device->ops->describe(device, out);
    memcpy(out->reason, device->reason, sizeof out->reason);
    out->fell_back = device->fell_back;
}

int64_t device_memory_used(const struct device *device)
{
    return __atomic_load_n(&device->memory_used, __ATOMIC_RELAXED);
}

enum status device_synchronize(struct device *device, struct error *err)
{
    return device->ops->synchronize(device, err);
}

// ---- Tensors --------------------------------------------------------------

bool device_computes(const struct device *device, enum tensor_type type)
{
    return (unsigned int)type < TENSOR_TYPE_COUNT && device->ops->weight_types >> type & 1;
}

size_t tensor_bytes(const struct tensor *tensor)
{
    return tensor->rows * tensor_row_bytes(tensor->type, tensor->columns);
}

enum status device_tensor_new(struct device *device, struct tensor *out, enum tensor_type type,
                              size_t rows, size_t columns, struct error *err)
{
    size_t size;
    if (columns > PTRDIFF_MAX / sizeof(float) ||
        __builtin_mul_overflow(rows, tensor_row_bytes(type, columns), &size) || size == 0 ||
        size > PTRDIFF_MAX)
        return error_set(err, STATUS_INVALID, "tensor of %zu x %zu: empty or too large", rows,
                         columns);
    if (columns % tensor_formats[type].block_elements != 0)
        return error_set(err, STATUS_INVALID, "rows of %zu elements are no whole blocks of %s",
                         columns, tensor_type_name(type));

    void *data = NULL;
    enum status status = device->ops->allocate(device, &data, size, err);
    if (status != STATUS_OK)
        return status;
    device_count_memory(device, (int64_t)size);
    *out = (struct tensor){.type = type, .rows = rows, .columns = columns, .data = data};
    return STATUS_OK;
}

void device_tensor_free(struct device *device, struct tensor *tensor)
{
    if (tensor->data) {
        size_t size = tensor_bytes(tensor);
        device->ops->release(device, tensor->data, size);
        device_count_memory(device, -(int64_t)size);
    }
    memset(tensor, 0, sizeof *tensor);
}

struct tensor tensor_rows(const struct tensor *tensor, size_t first, size_t count)
{
    size_t row_size = tensor_row_bytes(tensor->type, tensor->columns);
    return (struct tensor){.type = tensor->type,
                           .rows = count,
                           .columns = tensor->columns,
                           .data = (unsigned char *)tensor->data + first * row_size};
}

static bool inside(const struct tensor *tensor, size_t offset, size_t size)
{
    size_t bytes = tensor_bytes(tensor);
    return tensor->data && offset <= bytes && size <= bytes - offset;
}

enum status device_upload(struct device *device, struct tensor *tensor, size_t offset,
                          const void *from, size_t size, struct error *err)
{
    if (!inside(tensor, offset, size))
        return error_set(err, STATUS_INVALID, "upload: outside the tensor");
    return device->ops->upload(device, (unsigned char *)tensor->data + offset, from, size, err);
}

enum status device_download(struct device *device, void *to, const struct tensor *tensor,
                            size_t offset, size_t size, struct error *err)
{
    if (!inside(tensor, offset, size))
        return error_set(err, STATUS_INVALID, "download: outside the tensor");
    return device->ops->download(device, to, (const unsigned char *)tensor->data + offset, size,
                                 err);
}

// ---- Operations -----------------------------------------------------------

static bool is_f32(const struct tensor *t)
{
    return t->data && t->type == TENSOR_F32 && t->rows > 0 && t->columns > 0;
}

static bool is_weight(const struct device *device, const struct tensor *t)
{
    return t->data && device_computes(device, t->type) && t->rows > 0 && t->columns > 0;
}

static bool same_shape(const struct tensor *a, const struct tensor *b)
{
    return a->rows == b->rows && a->columns == b->columns;
}

static enum status misfit(struct error *err, const char *operation)
{
    return error_set(err, STATUS_INVALID, "%s: the tensors' types or shapes do not fit", operation);
}

enum status device_embed(struct device *device, struct tensor *out, const struct tensor *table,
                         const uint32_t *ids, size_t n, struct error *err)
{
    if (!is_f32(out) || !is_weight(device, table) || out->rows != n ||
        out->columns != table->columns)
        return misfit(err, "embed");
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= table->rows)
            return error_set(err, STATUS_INVALID,
                             "embed: token %u is outside the vocabulary of %zu",
                             (unsigned int)ids[i], table->rows);
    return device->ops->embed(device, out, table, ids, err);
}

enum status device_matmul(struct device *device, struct tensor *out, const struct tensor *in,
                          const struct tensor *weight, struct error *err)
{
    if (!is_f32(out) || !is_f32(in) || !is_weight(device, weight) || out->data == in->data ||
        out->rows != in->rows || in->columns != weight->columns || out->columns != weight->rows)
        return misfit(err, "matmul");
    return device->ops->matmul(device, out, in, weight, err);
}

enum status device_rms_norm(struct device *device, struct tensor *out, const struct tensor *in,
                            const struct tensor *weight, float epsilon, struct error *err)
{
    if (!is_f32(out) || !is_f32(in) || !is_f32(weight) || !same_shape(out, in) ||
        weight->rows != 1 || weight->columns != in->columns)
        return misfit(err, "rms_norm");
    return device->ops->rms_norm(device, out, in, weight, epsilon, err);
}

enum status device_rope(struct device *device, struct tensor *x, const struct tensor *table,
                        size_t position, size_t heads, enum rope_pairs pairs, struct error *err)
{
    if (!is_f32(x) || !is_f32(table) || heads == 0 || x->columns % heads != 0 ||
        table->columns % 2 != 0 || table->columns > x->columns / heads || position > table->rows ||
        x->rows > table->rows - position)
        return misfit(err, "rope");
    return device->ops->rope(device, x, table, position, heads, pairs, err);
}

enum status device_attention(struct device *device, struct tensor *out, const struct tensor *query,
                             const struct tensor *keys, const struct tensor *values,
                             size_t position, size_t heads, size_t kv_heads, size_t window,
                             struct error *err)
{
    if (!is_f32(out) || !is_f32(query) || !is_f32(keys) || !is_f32(values) ||
        !same_shape(out, query) || !same_shape(keys, values) || heads == 0 || kv_heads == 0 ||
        heads % kv_heads != 0 || query->columns % heads != 0 ||
        keys->columns != query->columns / heads * kv_heads || position > keys->rows ||
        query->rows > keys->rows - position)
        return misfit(err, "attention");
    return device->ops->attention(device, out, query, keys, values, position, heads, kv_heads,
                                  window, err);
}

enum status device_swiglu(struct device *device, struct tensor *gate, const struct tensor *up,
                          struct error *err)
{
    if (!is_f32(gate) || !is_f32(up) || !same_shape(gate, up))
        return misfit(err, "swiglu");
    return device->ops->swiglu(device, gate, up, err);
}

enum status device_add(struct device *device, struct tensor *x, const struct tensor *y,
                       struct error *err)
{
    if (!is_f32(x) || !is_f32(y) || x->columns != y->columns ||
        (y->rows != 1 && y->rows != x->rows))
        return misfit(err, "add");
    return device->ops->add(device, x, y, err);
}

enum status device_scatter_add(struct device *device, struct tensor *x, const struct tensor *y,
                               const uint32_t *rows, const float *weights, struct error *err)
{
    if (!is_f32(x) || !is_f32(y) || x->columns != y->columns)
        return misfit(err, "scatter_add");
    for (size_t i = 0; i < y->rows; i++)
        if (rows[i] >= x->rows)
            return misfit(err, "scatter_add");
    return device->ops->scatter_add(device, x, y, rows, weights, err);
}
