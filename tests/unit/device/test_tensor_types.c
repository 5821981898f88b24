// Tensor types: elements of blocks as another program reads them, rounding, and products.
#include <math.h>

#include "server/device/cpu/kernels.h"
#include "server/device/device.h"
#include "tests/support/test.h"

static unsigned int digits(const char *text, size_t count)
{
    char word[9] = "";
    memcpy(word, text, count);
    return (unsigned int)strtoul(word, NULL, 16);
}

static enum tensor_type type_named(const char *name)
{
    unsigned int type = 0;
    while (type < TENSOR_TYPE_COUNT && strcmp(tensor_formats[type].name, name) != 0)
        type++;
    assert_int_not_equal(type, TENSOR_TYPE_COUNT);
    return (enum tensor_type)type;
}

// tensor_blocks.py wrote the file.
TEST_CASE(blocks_as_gguf_reads_them)
{
    char name[8], line[8192];
    unsigned char blocks[2 * 256];
    float elements[2 * TENSOR_BLOCK_MAX];
    size_t count = 0;
    FILE *file = fopen(INFERSTAT_UNIT_FOLDER "/tensor_blocks.txt", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        assert_int_equal(sscanf(line, "%7s", name), 1);
        const enum tensor_type type = type_named(name);
        const struct tensor_format *format = &tensor_formats[type];
        const char *at = line + strlen(name) + 1;
        for (size_t i = 0; i < 2 * format->block_bytes; i++, at += 2)
            blocks[i] = (unsigned char)digits(at, 2);
        assert_int_equal(*at++, ' ');
        tensor_widen(type, elements, blocks, 2 * format->block_elements);
        for (size_t i = 0; i < 2 * format->block_elements; i++, at += 8) {
            const unsigned int bits = digits(at, 8);
            float expected;
            memcpy(&expected, &bits, sizeof expected);
            if (elements[i] < expected || elements[i] > expected)
                fail_msg("%s: element %zu is %g", name, i, (double)elements[i]);
        }
        assert_int_equal(*at, '\n');
        count++;
    }
    (void)fclose(file);
    assert_int_equal(count, TENSOR_TYPE_COUNT - TENSOR_Q8_0);
}

enum { COLUMNS = 3 * TENSOR_BLOCK_MAX };

static void fill(float *out, size_t n, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)((double)(test_random(seed) >> 11) * 0x1p-52 - 1.0);
}

// The largest error of a type that rounds elements of -1..1: half a step, and what scales of few
// bits add.
TEST_CASE(rounding_is_close)
{
    static const double most[TENSOR_TYPE_COUNT] = {
        [TENSOR_F16] = 0x1p-12,    [TENSOR_BF16] = 0x1p-9,    [TENSOR_Q8_0] = 1.01 / 254,
        [TENSOR_Q4_0] = 1.01 / 8,  [TENSOR_Q4_1] = 1.01 / 15, [TENSOR_Q5_0] = 1.01 / 16,
        [TENSOR_Q5_1] = 1.01 / 31, [TENSOR_Q4_K] = 1.2 / 15,  [TENSOR_Q5_K] = 1.3 / 31,
        [TENSOR_Q6_K] = 1.2 / 32,
    };
    uint64_t seed = 3;
    float in[COLUMNS], out[COLUMNS];
    unsigned char row[sizeof in];
    for (unsigned int t = 0; t < TENSOR_TYPE_COUNT; t++) {
        for (unsigned int round = 0; round < 20; round++) {
            fill(in, COLUMNS, &seed);
            if (round == 0)
                memset(in, 0, sizeof in);
            tensor_narrow(&tensor_formats[t], row, in, COLUMNS);
            tensor_widen((enum tensor_type)t, out, row, COLUMNS);
            for (size_t i = 0; i < COLUMNS; i++)
                if (fabs((double)(out[i] - in[i])) > most[t])
                    fail_msg("%s: %g became %g", tensor_formats[t].name, (double)in[i],
                             (double)out[i]);
        }
    }
}

// A row of a product, as the definition says, with the widest elements there are.
static double product_of(const float *x, enum tensor_type type, const void *row, size_t k)
{
    float weight[COLUMNS];
    double sum = 0.0;
    tensor_widen(type, weight, row, k);
    for (size_t i = 0; i < k; i++)
        sum += (double)x[i] * (double)weight[i];
    return sum;
}

enum { ROWS = 70, OUTPUTS = 11 };

// A table's product of a type against the definition, and its single rows against the whole.
static void check_table(const struct cpu_kernels *table, enum tensor_type type, size_t k,
                        uint64_t *seed)
{
    const size_t row_bytes = tensor_row_bytes(type, k), groups = (k / CPU_GROUP + 7) / 8 * 8;
    float *in = calloc(ROWS * k, sizeof *in), *weight = calloc(k, sizeof *weight);
    float *all = calloc(ROWS * OUTPUTS, sizeof *all), one[OUTPUTS];
    unsigned char *rows = calloc(OUTPUTS, row_bytes);
    struct cpu_rounded rounded = {.groups = groups,
                                  .values = calloc(ROWS * groups, CPU_GROUP),
                                  .scales = calloc(2 * ROWS * groups, sizeof(float))};
    rounded.sums = rounded.scales + ROWS * groups;
    fill(in, ROWS * k, seed);
    for (size_t o = 0; o < OUTPUTS; o++) {
        fill(weight, k, seed);
        tensor_narrow(&tensor_formats[type], rows + o * row_bytes, weight, k);
    }
    const bool has_blocks = tensor_formats[type].group > 0;
    for (size_t r = 0; has_blocks && r < ROWS; r++)
        table->round(&rounded, r, in + r * k, k);
    struct cpu_product product = {.out = all,
                                  .out_stride = OUTPUTS,
                                  .in = in,
                                  .rounded = rounded,
                                  .rows = ROWS,
                                  .k = k,
                                  .weight = rows,
                                  .type = type};
    cpu_matmul_kernel *kernel = has_blocks ? table->matmul_blocks : table->matmul[type];
    kernel(&product, 0, 4);
    kernel(&product, 4, OUTPUTS);
    for (size_t r = 0; r < ROWS; r++) {
        product.rows = 1;
        product.out = one;
        product.in = in + r * k;
        product.rounded.values = rounded.values + r * groups * CPU_GROUP;
        product.rounded.scales = rounded.scales + r * groups;
        product.rounded.sums = rounded.sums + r * groups;
        kernel(&product, 0, OUTPUTS);
        assert_memory_equal(one, all + r * OUTPUTS, sizeof one);
        for (size_t o = 0; o < OUTPUTS; o++) {
            const double expected = product_of(in + r * k, type, rows + o * row_bytes, k);
            // Rounding to 8 bits: errors of up to 1/254 an element, of any sign.
            const double most = has_blocks ? 0.02 * sqrt((double)k) : 1e-4;
            if (fabs((double)one[o] - expected) > most)
                fail_msg("%s, %s, k %zu: %g, not %g", table->name, tensor_formats[type].name, k,
                         (double)one[o], expected);
        }
    }
    free(in);
    free(weight);
    free(all);
    free(rows);
    free(rounded.values);
    free(rounded.scales);
}

TEST_CASE(products_of_all_types)
{
    uint64_t seed = 5;
    for (size_t i = 0; cpu_kernels_at(i); i++)
        for (unsigned int t = 0; t < TENSOR_TYPE_COUNT; t++)
            for (size_t k = tensor_formats[t].block_elements == 256 ? 256 : 32; k <= COLUMNS;
                 k += tensor_formats[t].block_elements == 256 ? 256 : 224)
                check_table(cpu_kernels_at(i), (enum tensor_type)t, k, &seed);
}

// The integers themselves are multiplied without an error: rows that 8 bits hold.
TEST_CASE(products_of_integers)
{
    float in[COLUMNS];
    unsigned char row[sizeof in];
    int8_t values[COLUMNS];
    float scales[COLUMNS / CPU_GROUP], sums[COLUMNS / CPU_GROUP], out;
    uint64_t seed = 9;
    for (unsigned int t = TENSOR_Q8_0; t < TENSOR_TYPE_COUNT; t++) {
        fill(in, COLUMNS, &seed);
        tensor_narrow(&tensor_formats[t], row, in, COLUMNS);
        for (size_t i = 0; i < COLUMNS; i++)
            in[i] = i % CPU_GROUP ? (float)(test_random(&seed) % 255) - 127.0F : -127.0F;
        const struct cpu_kernels *table;
        for (size_t i = 0; (table = cpu_kernels_at(i)) != NULL; i++) {
            struct cpu_product product = {
                .out = &out,
                .in = in,
                .rounded = {values, scales, sums, COLUMNS / CPU_GROUP},
                .rows = 1,
                .k = COLUMNS,
                .weight = row,
                .type = (enum tensor_type)t,
            };
            table->round(&product.rounded, 0, in, COLUMNS);
            table->matmul_blocks(&product, 0, 1);
            const double expected = product_of(in, (enum tensor_type)t, row, COLUMNS);
            if (fabs((double)out - expected) > 0.02)
                fail_msg("%s, %s: %g, not %g", table->name, tensor_formats[t].name, (double)out,
                         expected);
        }
    }
}

TEST_CASE(rows_of_part_blocks_are_refused)
{
    struct device *device = NULL;
    struct tensor tensor;
    struct error err = {0};
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cpu"}, &err),
                     STATUS_OK);
    assert_int_equal(device_tensor_new(device, &tensor, TENSOR_Q4_K, 2, 288, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "Q4_K"));
    assert_int_equal(device_tensor_new(device, &tensor, TENSOR_Q8_0, 2, 288, &err), STATUS_OK);
    assert_int_equal(tensor_bytes(&tensor), 2 * 9 * 34);
    device_tensor_free(device, &tensor);
    device_close(device);
}

int main(void)
{
    return TEST_RUN(blocks_as_gguf_reads_them, rounding_is_close, products_of_all_types,
                    products_of_integers, rows_of_part_blocks_are_refused);
}
