// Files of keys under libFuzzer.  The first byte chooses what the rest is: a secret
// key's file, a list of public keys, known_collectors, or a collector's list of
// authorized keys, each as it comes or with sound keys put in place of '\1' to '\4'.
#include <string.h>

#include "common/wire/keys.h"
#include "common/wire/trust.h"
#include "server/collector/access/access_list.h"
#include "tests/fuzz/feed.h"
#include "tests/fuzz/fuzz.h"

static const char *const sound_keys[] = {
    "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID",
    "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6", // the secret one of the next
    "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7",
    "k[*:ZM5W<c$f+H9*2oZ&HWc?Ox}Xx]6lXg6aO1w.",
};

enum { KEYS = sizeof sound_keys / sizeof sound_keys[0], TEXT_MAX = 1 << 16 };

// The input with keys put in.
static size_t expand(uint8_t *out, const uint8_t *data, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < size && used + WIRE_KEY_TEXT_SIZE < TEXT_MAX; i++) {
        if (data[i] < 1 || data[i] > KEYS) {
            out[used++] = data[i];
            continue;
        }
        memcpy(out + used, sound_keys[data[i] - 1], WIRE_KEY_TEXT_SIZE - 1);
        used += WIRE_KEY_TEXT_SIZE - 1;
    }
    return used;
}

static void check_refusal(enum status status, const struct error *err)
{
    check(status == STATUS_INVALID || status == STATUS_DENIED || status == STATUS_NOT_FOUND);
    check(err->text[0] != '\0' && strlen(err->text) < sizeof err->text);
}

static bool is_key(const unsigned char key[WIRE_KEY_SIZE])
{
    char text[WIRE_KEY_TEXT_SIZE];
    unsigned char again[WIRE_KEY_SIZE];
    return wire_key_parse(again, wire_key_text(text, key)) &&
           memcmp(again, key, WIRE_KEY_SIZE) == 0;
}

static void check_secret(const uint8_t *text, size_t size)
{
    struct wire_keypair pair;
    struct error err = {0};
    enum status status = keys_read(&pair, feed_file("key", text, size), &err);
    if (status != STATUS_OK)
        check_refusal(status, &err);
    else
        check(wire_keypair_fits(&pair));
}

static void check_public(const uint8_t *text, size_t size)
{
    unsigned char keys[3][WIRE_KEY_SIZE];
    size_t count = 0;
    struct error err = {0};
    enum status status = keys_read_public(keys, 3, &count, feed_file("pub", text, size), &err);
    if (status != STATUS_OK)
        check_refusal(status, &err);
    check(count <= 3 && (status != STATUS_OK || count > 0));
    for (size_t i = 0; i < count; i++)
        check(is_key(keys[i]));
}

static void check_known(const uint8_t *text, size_t size)
{
    static const char *const places[] = {"tcp://10.0.0.1", "tcp://[::1]:6000", "tcp://a.lan:7",
                                         "tcp://localhost"};
    (void)feed_file("inferstat/known_collectors", text, size);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        // Without a key of one's own it ends there, wherever the list leads.
        const struct trust_options options = {.key_file = "/nowhere/at.all"};
        struct address address;
        struct trust_source source;
        struct trust trust;
        struct error err = {0};
        check(address_parse(&address, places[i], &err) == STATUS_OK);
        check(trust_source_read(&source, &options, &err) == STATUS_OK);
        enum status status = trust_decide(&trust, &address, &source, &err);
        if (status != STATUS_OK)
            check_refusal(status, &err);
        else
            check(address_is_local(&address));
        check(trust.pass_count == 0 && !trust.warning[0]);
    }
}

// Takes one key of the list away and puts another in: the texts made read back.
static void check_changes(const struct access_list *list, const char *text, size_t size)
{
    struct query query = {
        .kind = QUERY_AUTHORIZE, .key.roles = 1U << QUERY_ROLE_READER, .key.name = "fuzz.added"};
    struct error err = {0};
    struct access_list changed;
    char *with = NULL, *without = NULL;
    (void)snprintf(query.key.text, sizeof query.key.text, "%s", sound_keys[3]);
    if (list->count > 0)
        (void)wire_key_text(query.key.replaces, list->keys[0].key);
    if (access_text_with(&with, text, size, list, &query, &err) == STATUS_OK) {
        check(access_list_parse(&changed, with, strlen(with), "with", &err) == STATUS_OK);
        const struct access_key *added = access_list_named(&changed, "fuzz.added");
        check(added && added->roles == query.key.roles);
        access_list_deinit(&changed);
    }
    if (list->count > 0 &&
        access_text_without(&without, text, size, list->keys[0].line, &err) == STATUS_OK) {
        check(access_list_parse(&changed, without, strlen(without), "without", &err) == STATUS_OK);
        check(changed.count == list->count - 1);
        check(!access_list_find(&changed, list->keys[0].key));
        check(access_list_revokes(list, &changed));
        access_list_deinit(&changed);
    }
    free(with);
    free(without);
}

static void check_authorized(const uint8_t *text, size_t size)
{
    struct access_list list;
    struct error err = {0};
    char *copy = malloc(size ? size : 1); // exactly as long, so that reading on is seen
    check(copy != NULL);
    if (size)
        memcpy(copy, text, size);
    enum status status = access_list_parse(&list, copy, size, "file", &err);
    if (status != STATUS_OK)
        check_refusal(status, &err);
    check(status == STATUS_OK || list.count == 0);
    for (size_t i = 0; i < list.count; i++) {
        check(is_key(list.keys[i].key) && access_name_is_valid(list.keys[i].name));
        check(list.keys[i].roles != 0 && list.keys[i].roles < 1U << QUERY_ROLE_COUNT);
        check(access_list_find(&list, list.keys[i].key) == &list.keys[i]);
        check(access_list_continues(&list, list.keys[i].key, list.keys[i].key));
    }
    check(!access_list_revokes(&list, &list));
    if (status == STATUS_OK)
        check_changes(&list, copy, size);
    access_list_deinit(&list);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(const uint8_t *, size_t) = {check_secret, check_public,
                                                              check_known, check_authorized};
    static uint8_t text[TEXT_MAX + WIRE_KEY_TEXT_SIZE];
    static bool prepared = false;
    if (!prepared) {
        check(setenv("XDG_CONFIG_HOME", feed_folder(), 1) == 0);
        (void)unsetenv("INFERSTAT_SERVER_KEY");
        prepared = true;
    }
    if (size == 0)
        return 0;
    size_t used = size - 1;
    const uint8_t *bytes = data + 1;
    if (!(data[0] & 4)) {
        used = expand(text, data + 1, size - 1);
        bytes = text;
    }
    checks[data[0] & 3](bytes, used);
    return 0;
}
