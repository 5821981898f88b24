// Private struct of a parsed GGUF header: gguf_read.c fills it, gguf.c reads it.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_GGUF_PARTS_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_GGUF_PARTS_H

#include "server/workload/llm/gguf.h"

enum { GGUF_SHOWN_SIZE = 80 }; // maximum size of a name in a message

// A metadata key: offsets of its name and value in the header.
struct gguf_entry {
    size_t name, name_size;
    enum gguf_value_type type, element; // `element` of an array
    size_t value, value_size;           // elements only, for an array
    size_t count;                       // of an array
};

// A tensor, and the offset of its name in the header, whose memory moves while it is read.
struct gguf_listed {
    struct gguf_tensor tensor;
    size_t name;
};

struct gguf {
    struct byte_source source; // used only while reading
    unsigned char *header;     // the file's first `header_size` bytes
    size_t header_size, header_capacity;
    size_t at; // offset of the next byte to parse

    uint32_t version;
    uint64_t data_start;
    struct gguf_entry *entries; // sorted by name
    size_t entry_count, entry_capacity;
    struct gguf_listed *tensors; // sorted by offset
    size_t tensor_count, tensor_capacity;
    const struct gguf_tensor **by_name;
};

// Order of names: by bytes, a prefix first.
int gguf_compare_names(const void *a, size_t a_size, const void *b, size_t b_size);

#endif
