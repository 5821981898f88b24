// The query language under libFuzzer: first a filter made of the bytes, written and
// read again; then the bytes themselves as a line.
#include "common/core/query/query_text.h"

#include <string.h>

#include "common/core/base/text.h"
#include "common/sys/when.h"
#include "tests/fuzz/fuzz.h"

static enum status when(void *context, int64_t *out_ns, const char *text, bool latest,
                        struct error *err)
{
    (void)context;
    static const int64_t now_ns = INT64_C(1774785600000000000);
    return when_parse(out_ns, text, now_ns, latest, "time", err);
}

struct bytes {
    const uint8_t *next;
    size_t left;
};

static unsigned next_byte(struct bytes *bytes)
{
    if (bytes->left == 0)
        return 0;
    bytes->left--;
    return *bytes->next++;
}

// A number of `count` bytes.
static int64_t take_number(struct bytes *bytes, unsigned count)
{
    uint64_t number = 0;
    while (count-- > 0)
        number = number << 8 | next_byte(bytes);
    return (int64_t)(number >> 1);
}

// A text of the next bytes: a length and as many, as far as they are UTF-8.
static void take_text(struct bytes *bytes, char *out, size_t size)
{
    size_t length = next_byte(bytes);
    if (length > bytes->left)
        length = bytes->left;
    if (length >= size)
        length = size - 1;
    size_t used = 0;
    while (used < length) {
        const char *text = (const char *)bytes->next + used;
        const size_t character = text_character(text, length - used, NULL);
        if (character == 0 || *text == '\0')
            break;
        memcpy(out + used, text, character);
        used += character;
    }
    out[used] = '\0';
    bytes->next += length;
    bytes->left -= length;
}

static void take_filter(struct bytes *bytes, struct query_filter *filter)
{
    const unsigned which = next_byte(bytes) | (unsigned)next_byte(bytes) << 8;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (which >> i & 1 && query_dimension_words((enum query_dimension)i) != COLUMN_INT)
            (void)snprintf(filter->by[i], QUERY_TEXT_SIZE, "%s",
                           column_enum_text(query_dimension_words((enum query_dimension)i),
                                            next_byte(bytes) % 2));
        else if (which >> i & 1 && query_dimension_is_number((enum query_dimension)i))
            (void)snprintf(filter->by[i], QUERY_TEXT_SIZE, "%u", next_byte(bytes));
        else if (which >> i & 1)
            take_text(bytes, filter->by[i], i == QUERY_BY_RUN ? 37 : QUERY_TEXT_SIZE);
    if (which >> 14 & 1)
        filter->since_ns = take_number(bytes, 8);
    if (which >> 15 & 1)
        filter->until_ns = take_number(bytes, 8);
}

// Compares what a line says, which is more than bytes: what stands behind the end of
// a text is no part of it.
static bool filters_equal(const struct query_filter *a, const struct query_filter *b)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (strcmp(a->by[i], b->by[i]) != 0)
            return false;
    return a->since_ns == b->since_ns && a->until_ns == b->until_ns;
}

// A filter that can be asked, and has a text, reads from it as it was.
static void check_round(const struct query_filter *filter)
{
    static char line[QUERY_LINE_SIZE];
    const struct query query = {.kind = QUERY_SUMMARY, .filter = *filter};
    struct query_filter again;
    struct error err = {0};
    if (query_check(&query, &err) != STATUS_OK)
        return;
    enum status status = query_text_write_filter(line, sizeof line, filter, &err);
    check(status == STATUS_OK || status == STATUS_UNSUPPORTED); // a time that has none
    if (status != STATUS_OK)
        return;
    check(text_is_utf8(line, strlen(line)));
    check(query_text_read_filter(&again, line, when, NULL, NULL, &err) == STATUS_OK);
    check(filters_equal(&again, filter));
}

static void check_bytes(const uint8_t *data, size_t size)
{
    char *line = malloc(size + 1);
    check(line != NULL);
    memcpy(line, data, size);
    line[size] = '\0';

    struct query query;
    struct query_filter filter;
    struct query_place place = {0};
    struct error err = {0};
    const size_t length = strlen(line);
    if (query_text_read(&query, line, when, NULL, &place, &err) == STATUS_OK) {
        check(query_check(&query, NULL) == STATUS_OK);
        check_round(&query.filter);
    } else {
        check(place.at <= length && place.size <= length - place.at);
        check(strncmp(err.text, "column ", 7) == 0);
        check(!strpbrk(err.text, "\x1b\n\r\t")); // what it quotes is escaped
    }
    if (query_text_read_filter(&filter, line, when, NULL, &place, &err) == STATUS_OK) {
        check_round(&filter);
    } else {
        check(place.at <= length && place.size <= length - place.at);
    }
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes bytes = {data, size};
    struct query_filter filter = {0};
    take_filter(&bytes, &filter);
    check_round(&filter);
    check_bytes(data, size);
    return 0;
}
