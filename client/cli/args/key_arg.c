#include "client/cli/args/key_arg.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/wire/keys.h"

// A key, or the line of a FILE.pub: a key and a comment.
static bool is_key(unsigned char bytes[WIRE_KEY_SIZE], const char *word)
{
    char first[WIRE_KEY_TEXT_SIZE];
    word += strspn(word, " \t");
    const size_t size = strcspn(word, " \t\r\n");
    if (size >= sizeof first)
        return false;
    memcpy(first, word, size);
    first[size] = '\0';
    return wire_key_parse(bytes, first);
}

enum status key_arg_parse(char key[WIRE_KEY_TEXT_SIZE], const char *word, const char *what,
                          struct error *err)
{
    unsigned char bytes[1][WIRE_KEY_SIZE];
    // A path may look like a key: an existing file is a path.
    if (access(word, F_OK) != 0 && is_key(bytes[0], word)) {
        (void)wire_key_text(key, bytes[0]);
        return STATUS_OK;
    }
    size_t count = 0;
    enum status status = keys_read_public(bytes, 1, &count, word, err);
    if (status == STATUS_NOT_FOUND)
        return error_set(
            err, STATUS_INVALID,
            "%s: neither a public key (40 characters, or the line that begins with them) "
            "nor a file that holds one",
            what);
    if (status != STATUS_OK)
        return error_prefix(err, status, "%s", what);
    (void)wire_key_text(key, bytes[0]);
    return STATUS_OK;
}
