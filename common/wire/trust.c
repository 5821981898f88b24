#include "common/wire/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/wire/text_file.h"

static const char system_list[] = "/etc/inferstat/known_collectors";

// The server keys of an address, as they are found.
struct keyring {
    unsigned char keys[TRUST_PASSES_MAX][WIRE_KEY_SIZE];
    size_t count;
};

static void add_key(struct keyring *ring, const unsigned char key[WIRE_KEY_SIZE])
{
    for (size_t i = 0; i < ring->count; i++)
        if (memcmp(ring->keys[i], key, WIRE_KEY_SIZE) == 0)
            return;
    if (ring->count < TRUST_PASSES_MAX)
        memcpy(ring->keys[ring->count++], key, WIRE_KEY_SIZE);
}

// Takes one line of known_collectors.
static enum status read_known(struct keyring *ring, const struct address *address, char *line,
                              struct error *err)
{
    const char *place = text_file_word(&line);
    const char *text = text_file_word(&line);
    struct address known;
    unsigned char key[WIRE_KEY_SIZE];
    enum status status = address_parse(&known, place ? place : "", err);
    if (status != STATUS_OK)
        return status;
    if (!text || !wire_key_parse(key, text))
        return error_set(err, STATUS_INVALID,
                         "not a public key behind the address (a line is ADDRESS KEY [COMMENT])");
    char listed[ADDRESS_TEXT_SIZE], wanted[ADDRESS_TEXT_SIZE];
    if (strcasecmp(address_endpoint(listed, &known, ADDRESS_INGEST),
                   address_endpoint(wanted, address, ADDRESS_INGEST)) == 0)
        add_key(ring, key);
    return STATUS_OK;
}

// Adds the keys that a list has for the address.  One that is not there has none.
static enum status read_list(struct keyring *ring, const char *path, const struct address *address,
                             struct error *err)
{
    struct text_file *file = NULL;
    enum status status = text_file_open(&file, path, TEXT_FILE_TRUSTED, err);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    char *line;
    while (status == STATUS_OK && (line = text_file_next_entry(file))) {
        status = read_known(ring, address, line, err);
        if (status != STATUS_OK)
            (void)error_prefix(err, status, "%.200s:%u", path, text_file_line(file));
    }
    if (status == STATUS_OK)
        status = text_file_status(file, err);
    text_file_close(file);
    return status;
}

static const char *option_or_environment(const char *option, const char *variable)
{
    const char *value = option ? option : getenv(variable);
    return value && value[0] ? value : NULL;
}

// Copies a text, "" for NULL; false if it is too long.
static bool copy_text(char out[KEYS_PATH_SIZE], const char *text)
{
    return snprintf(out, KEYS_PATH_SIZE, "%s", text ? text : "") < KEYS_PATH_SIZE;
}

// The path of a file of the configuration folder; "" if there is no such folder.
static void use_default(char out[KEYS_PATH_SIZE], const char *name)
{
    if (keys_default_path(out, KEYS_PATH_SIZE, name, NULL) != STATUS_OK)
        out[0] = '\0';
}

enum status trust_source_read(struct trust_source *out, const struct trust_options *options,
                              struct error *err)
{
    const char *key = option_or_environment(options->key_file, "INFERSTAT_KEY");
    const char *server_key = option_or_environment(options->server_key, "INFERSTAT_SERVER_KEY");
    *out = (struct trust_source){.key_is_named = key != NULL, .insecure = options->insecure};
    if (!copy_text(out->key_file, key) || !copy_text(out->server_key, server_key))
        return error_set(err, STATUS_INVALID, "a key file's path is too long");
    if (!key)
        use_default(out->key_file, "key");
    use_default(out->known_collectors, "known_collectors");
    return peer_trust_init(
        &out->users, option_or_environment(options->collector_user, "INFERSTAT_COLLECTOR_USER"),
        err);
}

static enum status find_server_keys(struct keyring *ring, const struct address *address,
                                    const struct trust_source *source, struct error *err)
{
    const char *named = source->server_key, *own_list = source->known_collectors;
    enum status status = STATUS_OK;
    if (!named[0]) {
        if (own_list[0])
            status = read_list(ring, own_list, address, err);
        return status == STATUS_OK ? read_list(ring, system_list, address, err) : status;
    }
    // A path may look like a key; a key that is the name of a file does not happen.
    if (access(named, F_OK) != 0 && wire_key_parse(ring->keys[0], named)) {
        ring->count = 1;
        return STATUS_OK;
    }
    status = keys_read_public(ring->keys, TRUST_PASSES_MAX, &ring->count, named, err);
    return status == STATUS_OK ? status
                               : error_prefix(err, status, "the collector's key (--server-key)");
}

static enum status read_own_key(struct wire_keypair *out, const struct trust_source *source,
                                struct error *err)
{
    enum status status = STATUS_NOT_FOUND;
    if (source->key_file[0])
        status = keys_read(out, source->key_file, err);
    if (status != STATUS_NOT_FOUND || source->key_is_named)
        return status;
    return error_set(err, STATUS_NOT_FOUND,
                     "the collector wants a key and there is none yet (make one with `inferstat "
                     "keygen`, or name its file with --key)");
}

static enum status plain(struct trust *out, const struct address *address, bool insecure,
                         struct error *err)
{
    char text[ADDRESS_TEXT_SIZE];
    if (address_is_local(address))
        return STATUS_OK;
    if (!insecure)
        return error_set(err, STATUS_DENIED,
                         "%.200s: not trusted: its key is not known (inferstat trust ADDRESS KEY, "
                         "or --server-key; --insecure goes without)",
                         address_text(text, address));
    (void)snprintf(out->warning, sizeof out->warning,
                   "%.120s: without keys: anyone on the path can read and change what is sent",
                   address_text(text, address));
    return STATUS_OK;
}

static enum status with_keys(struct trust *out, const struct keyring *ring,
                             const struct trust_source *source, struct error *err)
{
    struct wire_keypair own;
    enum status status = read_own_key(&own, source, err);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < ring->count; i++) {
        out->passes[i].own = own;
        memcpy(out->passes[i].server_key, ring->keys[i], WIRE_KEY_SIZE);
    }
    out->pass_count = (unsigned)ring->count;
    explicit_bzero(&own, sizeof own);
    return STATUS_OK;
}

enum status trust_decide(struct trust *out, const struct address *address,
                         const struct trust_source *source, struct error *err)
{
    struct keyring ring = {0};
    *out = (struct trust){.users = source->users};
    if (address->is_ipc)
        return STATUS_OK;
    enum status status = find_server_keys(&ring, address, source, err);
    if (status != STATUS_OK)
        return status;
    if (ring.count == 0)
        return plain(out, address, source->insecure, err);
    return with_keys(out, &ring, source, err);
}

const struct wire_pass *trust_pass(const struct trust *trust, unsigned attempt)
{
    return trust->pass_count ? &trust->passes[attempt % trust->pass_count] : NULL;
}

enum status trust_connect(struct wire_socket **out, struct wire_context *context,
                          const struct trust *trust, const struct address *address,
                          enum address_service service, unsigned attempt, struct error *err)
{
    char endpoint[ADDRESS_TEXT_SIZE];
    return wire_connect(out, context, address_endpoint(endpoint, address, service), service,
                        trust_pass(trust, attempt), &trust->users, err);
}
