// Tables of the types of values and tensors in a GGUF file; texts and elements of arrays.
#include <string.h>

#include "server/workload/llm/gguf.h"

static const struct value_line {
    const char *name;
    size_t size;
} value_types[] = {
#define GGUF_VALUE_LINE(name, text, size) {text, size},
    GGUF_VALUE_TABLE(GGUF_VALUE_LINE)
#undef GGUF_VALUE_LINE
};

size_t gguf_value_type_size(enum gguf_value_type type)
{
    return (unsigned int)type < GGUF_VALUE_TYPE_COUNT ? value_types[type].size : 0;
}

const char *gguf_value_type_name(enum gguf_value_type type)
{
    return value_types[type].name;
}

static const struct gguf_tensor_type tensor_types[] = {
    {GGUF_TENSOR_F32, "F32", 1, 4},
    {GGUF_TENSOR_F16, "F16", 1, 2},
    {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},
    {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},
    {9, "Q8_1", 32, 36},
    {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},
    {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},
    {15, "Q8_K", 256, 292},
    {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98},
    {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},
    {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1},
    {25, "I16", 1, 2},
    {26, "I32", 1, 4},
    {27, "I64", 1, 8},
    {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},
    {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},
};

const struct gguf_tensor_type *gguf_tensor_type(uint32_t number)
{
    for (size_t i = 0; i < sizeof tensor_types / sizeof *tensor_types; i++)
        if (tensor_types[i].number == number)
            return &tensor_types[i];
    return NULL;
}

bool gguf_text_is(const struct gguf_text *text, const char *word)
{
    return text->size == strlen(word) && memcmp(text->data, word, text->size) == 0;
}

float gguf_array_float(const struct gguf_array *array, size_t index)
{
    float value;
    memcpy(&value, array->data + index * sizeof value, sizeof value);
    return value;
}

int32_t gguf_array_int(const struct gguf_array *array, size_t index)
{
    int32_t value;
    memcpy(&value, array->data + index * sizeof value, sizeof value);
    return value;
}

struct gguf_text gguf_array_next_text(struct gguf_array *array)
{
    uint64_t size;
    memcpy(&size, array->data, sizeof size);
    struct gguf_text text = {.data = (const char *)array->data + sizeof size, .size = (size_t)size};
    array->data += sizeof size + text.size;
    array->count--;
    return text;
}
