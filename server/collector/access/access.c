#include "server/collector/access/access.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/core/base/text.h"
#include "common/store/read/answer_cells.h"
#include "common/sys/clock.h"
#include "common/sys/files.h"
#include "common/sys/log.h"
#include "common/wire/text_file.h"
#include "server/collector/access/access_list.h"

enum { FILE_MODE = 0640 };

struct access {
    char *path;
    // Held while the file is read or written; taken before `lock`.
    pthread_mutex_t file_lock;
    struct stat seen; // the file that `list` was read from; all zero: missing
    bool missed;      // missing at the last poll; `list` is older
    bool told;        // a read error was logged
    pthread_mutex_t lock;
    struct access_list list;
    size_t expired;          // keys of `list` that had expired at the last poll
    atomic_uint revocations; // publishes nothing: relaxed
};

// ---- The file ------------------------------------------------------------------------

// The text and the state of the file; of a missing one empty and all zero.
struct text {
    struct text_file *file; // NULL: missing
    const char *bytes;
    size_t size;
    struct stat about;
};

static enum status read_list(struct access_list *list, struct text *out, const char *path,
                             struct error *err)
{
    *out = (struct text){.bytes = ""};
    enum status status = text_file_open(&out->file, path, TEXT_FILE_TRUSTED, err);
    if (status == STATUS_OK) {
        out->bytes = text_file_contents(out->file, &out->size);
        out->about = *text_file_stat(out->file);
    } else if (status != STATUS_NOT_FOUND) {
        return status;
    }
    return access_list_parse(list, out->bytes, out->size, path, err);
}

// ---- The list ------------------------------------------------------------------------

// Installs and consumes the list.
static void install(struct access *access, struct access_list *list, const struct stat *about)
{
    (void)pthread_mutex_lock(&access->lock);
    struct access_list before = access->list;
    access->list = *list;
    (void)pthread_mutex_unlock(&access->lock);
    if (access_list_revokes(&before, list))
        (void)atomic_fetch_add_explicit(&access->revocations, 1, memory_order_relaxed);
    access_list_deinit(&before);
    *list = (struct access_list){0};
    access->seen = *about;
    access->expired = 0;
    access->missed = false;
    access->told = false;
}

// Reads the file and installs its list.  The caller holds file_lock.
static enum status read_again(struct access *access, struct error *err)
{
    struct text text;
    struct access_list list = {0};
    enum status status = read_list(&list, &text, access->path, err);
    if (status == STATUS_OK)
        install(access, &list, &text.about);
    text_file_close(text.file);
    return status;
}

enum status access_open(struct access **out, const char *path, struct error *err)
{
    struct access *access = calloc(1, sizeof *access);
    if (!access)
        return error_no_memory(err, "keys");
    (void)pthread_mutex_init(&access->file_lock, NULL);
    (void)pthread_mutex_init(&access->lock, NULL);
    enum status status = STATUS_OK;
    access->path = strdup(path);
    if (!access->path)
        status = error_no_memory(err, "keys");
    if (status == STATUS_OK)
        status = read_again(access, err);
    if (status != STATUS_OK) {
        access_close(access);
        return status;
    }
    *out = access;
    return STATUS_OK;
}

void access_close(struct access *access)
{
    if (!access)
        return;
    access_list_deinit(&access->list);
    (void)pthread_mutex_destroy(&access->lock);
    (void)pthread_mutex_destroy(&access->file_lock);
    free(access->path);
    free(access);
}

enum status access_reload(struct access *access, struct error *err)
{
    (void)pthread_mutex_lock(&access->file_lock);
    enum status status = read_again(access, err);
    (void)pthread_mutex_unlock(&access->file_lock);
    return status;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mode == b->st_mode && a->st_uid == b->st_uid &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

// A file that is missing for one poll only is being replaced by an editor.
static bool has_changed(struct access *access, struct stat *about)
{
    static const struct stat none;
    if (stat(access->path, about) != 0)
        *about = none;
    if (same_file(about, &access->seen)) {
        access->missed = false;
        return false;
    }
    if (about->st_ino == 0 && !access->missed) {
        access->missed = true;
        return false;
    }
    return true;
}

static bool is_expired(const struct access_key *key)
{
    return key->expires_ns && clock_wall_ns() >= key->expires_ns;
}

// Keys that have expired since the last poll are revoked.  The caller holds file_lock.
static void revoke_expired(struct access *access)
{
    size_t expired = 0;
    for (size_t i = 0; i < access->list.count; i++)
        expired += is_expired(&access->list.keys[i]);
    if (expired > access->expired)
        (void)atomic_fetch_add_explicit(&access->revocations, 1, memory_order_relaxed);
    access->expired = expired;
}

void access_poll(struct access *access)
{
    struct error err = {0};
    struct stat about;
    (void)pthread_mutex_lock(&access->file_lock);
    if (has_changed(access, &about)) {
        if (read_again(access, &err) == STATUS_OK) {
            log_write(LOG_LEVEL_INFO, "%s: %zu keys are authorized now", access->path,
                      access->list.count);
        } else if (!access->told) {
            log_write(LOG_LEVEL_ERROR, "%s (the previous keys stay authorized)", err.text);
            access->told = true;
        }
    }
    revoke_expired(access);
    (void)pthread_mutex_unlock(&access->file_lock);
}

// ---- Checks --------------------------------------------------------------------------

static uint32_t wanted_role(enum address_service service)
{
    static const enum query_role roles[ADDRESS_SERVICES] = {
        [ADDRESS_INGEST] = QUERY_ROLE_PRODUCER,
        [ADDRESS_QUERY] = QUERY_ROLE_READER,
        [ADDRESS_LIVE] = QUERY_ROLE_READER,
        [ADDRESS_ADMIN] = QUERY_ROLE_ADMIN,
    };
    return UINT32_C(1) << roles[service] | UINT32_C(1) << QUERY_ROLE_ADMIN;
}

enum access_verdict access_check(struct access *access, enum address_service service,
                                 const unsigned char key[WIRE_KEY_SIZE])
{
    enum access_verdict verdict = ACCESS_UNKNOWN;
    (void)pthread_mutex_lock(&access->lock);
    const struct access_key *about = access_list_find(&access->list, key);
    if (about && !is_expired(about))
        verdict = about->roles & wanted_role(service) ? ACCESS_GRANTED : ACCESS_ROLE;
    (void)pthread_mutex_unlock(&access->lock);
    return verdict;
}

bool access_continues(struct access *access, const unsigned char key[WIRE_KEY_SIZE],
                      const unsigned char owner[WIRE_KEY_SIZE])
{
    (void)pthread_mutex_lock(&access->lock);
    const bool continues = access_list_continues(&access->list, key, owner);
    (void)pthread_mutex_unlock(&access->lock);
    return continues;
}

bool access_key_named(struct access *access, const char *name, unsigned char key[WIRE_KEY_SIZE])
{
    (void)pthread_mutex_lock(&access->lock);
    const struct access_key *about = access_list_named(&access->list, name);
    if (about)
        memcpy(key, about->key, WIRE_KEY_SIZE);
    (void)pthread_mutex_unlock(&access->lock);
    return about != NULL;
}

bool access_name_of(struct access *access, const unsigned char key[WIRE_KEY_SIZE],
                    char name[QUERY_KEY_SIZE])
{
    (void)pthread_mutex_lock(&access->lock);
    const struct access_key *about = access_list_find(&access->list, key);
    if (about)
        memcpy(name, about->name, QUERY_KEY_SIZE);
    (void)pthread_mutex_unlock(&access->lock);
    return about != NULL;
}

unsigned access_revocations(struct access *access)
{
    return atomic_load_explicit(&access->revocations, memory_order_relaxed);
}

// ---- Administrators ------------------------------------------------------------------

static const struct answer_column columns[] = {
    {"key", UNIT_NONE},      {"name", UNIT_NONE},       {"roles", UNIT_NONE},
    {"replaces", UNIT_NONE}, {"expires_ns", UNIT_TIME}, {"lost_roles", UNIT_NONE},
};

static void add_row(struct result *answer, const struct access_key *about)
{
    char key[WIRE_KEY_TEXT_SIZE], roles[QUERY_KEY_SIZE];
    char replaces[ACCESS_REPLACES_MAX * WIRE_KEY_TEXT_SIZE + 1] = "";
    for (unsigned i = 0; i < about->replaces_count; i++)
        (void)text_append(replaces, sizeof replaces, " ", "%s",
                          wire_key_text(key, about->replaces[i]));
    answer_row(answer);
    answer_text(answer, "key", wire_key_text(key, about->key));
    answer_text(answer, "name", about->name);
    answer_text(answer, "roles", access_roles_text(roles, about->roles));
    if (replaces[0])
        answer_text(answer, "replaces", replaces);
    if (about->expires_ns)
        answer_int(answer, "expires_ns", about->expires_ns);
}

// The key that a revocation names, by the key itself or by its name.
static const struct access_key *find_revoked(const struct access_list *list,
                                             const struct query *query)
{
    unsigned char key[WIRE_KEY_SIZE];
    const struct access_key *found = NULL;
    if (wire_key_parse(key, query->key.text))
        found = access_list_find(list, key);
    return found ? found
                 : access_list_named(list, query->key.text[0] ? query->key.text : query->key.name);
}

static enum status text_for(char **out, const struct text *text, const struct access_list *list,
                            const struct query *query, struct result *answer, struct error *err)
{
    if (query->kind == QUERY_AUTHORIZE)
        return access_text_with(out, text->bytes, text->size, list, query, err);
    const struct access_key *revoked = find_revoked(list, query);
    if (!revoked)
        return error_set(err, STATUS_NO_DATA, "%.60s: no key and no name of one that is authorized",
                         query->key.text[0] ? query->key.text : query->key.name);
    add_row(answer, revoked);
    return access_text_without(out, text->bytes, text->size, revoked->line, err);
}

static enum status answer_authorized(struct access *access, const struct access_list *before,
                                     const struct query *query, struct result *answer,
                                     struct error *err)
{
    unsigned char key[WIRE_KEY_SIZE];
    char roles[QUERY_KEY_SIZE];
    const bool is_key = wire_key_parse(key, query->key.text);
    const struct access_key *now = is_key ? access_list_find(&access->list, key) : NULL;
    const struct access_key *old = is_key ? access_list_find(before, key) : NULL;
    if (!now)
        return error_set(err, STATUS_IO, "the key was not taken");
    add_row(answer, now);
    const uint32_t lost = old ? access_lost_roles(old, now) : 0;
    if (lost)
        answer_text(answer, "lost_roles", access_roles_text(roles, lost));
    return STATUS_OK;
}

// Changes the file's current content, also if others changed it.  The caller holds file_lock.
static enum status change(struct access *access, const struct query *query, struct result *answer,
                          struct error *err)
{
    struct text text;
    struct access_list list = {0};
    char *changed = NULL;
    enum status status = read_list(&list, &text, access->path, err);
    if (status == STATUS_OK)
        status = text_for(&changed, &text, &list, query, answer, err);
    const mode_t mode = text.about.st_mode ? text.about.st_mode & 0777 : FILE_MODE;
    if (status == STATUS_OK)
        status = files_write(access->path, changed, mode, true, err);
    if (status == STATUS_OK)
        status = read_again(access, err);
    if (status == STATUS_OK && query->kind == QUERY_AUTHORIZE)
        status = answer_authorized(access, &list, query, answer, err);
    access_list_deinit(&list);
    text_file_close(text.file);
    free(changed);
    return status;
}

enum status access_query(struct access *access, const struct query *query, struct result **out,
                         struct error *err)
{
    struct result *answer = NULL;
    enum status status = answer_new(&answer, columns, sizeof columns / sizeof *columns, err);
    (void)pthread_mutex_lock(&access->file_lock);
    if (status == STATUS_OK && query->kind != QUERY_KEYS)
        status = change(access, query, answer, err);
    for (size_t i = 0; query->kind == QUERY_KEYS && i < access->list.count; i++)
        if (status == STATUS_OK)
            add_row(answer, &access->list.keys[i]);
    (void)pthread_mutex_unlock(&access->file_lock);
    if (status == STATUS_OK)
        status = answer_check(answer, err);
    if (status != STATUS_OK) {
        result_free(answer);
        return status;
    }
    *out = answer;
    return STATUS_OK;
}
