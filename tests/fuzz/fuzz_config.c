// Configuration files under libFuzzer.
#include "common/sys/config.h"

#include <string.h>

#include "tests/fuzz/feed.h"
#include "tests/fuzz/fuzz.h"

// What came of a file: its pairs again as a file of one line each.
struct taken {
    char *text;
    size_t used, room;
    size_t count;
};

static enum status on_pair(void *context, const char *key, const char *value, struct error *err)
{
    struct taken *taken = context;
    check(key[0] != '\0' && key[0] != '#' && !strpbrk(key, "\n="));
    check(!strchr(value, '\n'));
    check(!strchr(" \t\r", key[0]) && !strchr(" \t\r", key[strlen(key) - 1]));
    check(!value[0] || (!strchr(" \t\r", value[0]) && !strchr(" \t\r", value[strlen(value) - 1])));
    if (strcmp(key, "stop") == 0)
        return error_set(err, STATUS_INVALID, "stopped");
    int size =
        snprintf(taken->text + taken->used, taken->room - taken->used, "%s = %s\n", key, value);
    check(size > 0 && (size_t)size < taken->room - taken->used);
    taken->used += (size_t)size;
    taken->count++;
    return STATUS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    // "a=" of a file becomes "a = " and a line's end.
    struct taken first = {.room = 4 * size + 64}, second = {.room = 4 * size + 64};
    first.text = malloc(first.room);
    second.text = malloc(second.room);
    check(first.text && second.text);
    first.text[0] = '\0';
    struct error err = {0};
    enum status status = config_read(feed_file("config", data, size), on_pair, NULL, &first, &err);
    if (status == STATUS_OK) {
        // What was read, written out, reads the same.
        const uint8_t *again = (const uint8_t *)first.text;
        check(config_read(feed_file("config", again, first.used), on_pair, NULL, &second, &err) ==
              STATUS_OK);
        check(second.count == first.count && second.used == first.used &&
              memcmp(second.text, first.text, first.used) == 0);
    } else {
        check(status == STATUS_INVALID);
        check(strstr(err.text, "config") != NULL); // names the file
    }
    free(first.text);
    free(second.text);
    return 0;
}
