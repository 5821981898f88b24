#include "common/wire/peer_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/parse.h"

enum { WRITABLE_BY_OTHERS = S_IWGRP | S_IWOTH };

static bool has_uid(const struct peer_trust *trust, uid_t uid)
{
    for (unsigned i = 0; i < trust->count; i++)
        if (trust->uids[i] == uid)
            return true;
    return false;
}

static void add_uid(struct peer_trust *trust, uid_t uid)
{
    if (!has_uid(trust, uid) && trust->count < sizeof trust->uids / sizeof trust->uids[0])
        trust->uids[trust->count++] = uid;
}

enum status peer_trust_init(struct peer_trust *out, const char *user, struct error *err)
{
    char room[1024];
    struct passwd entry, *found = NULL;
    int64_t number;
    *out = (struct peer_trust){.uids = {geteuid(), 0}, .count = 2};
    if (!user)
        return STATUS_OK;
    if (getpwnam_r(user, &entry, room, sizeof room, &found) == 0 && found)
        add_uid(out, entry.pw_uid);
    else if (parse_int(&number, user, 0, UINT32_MAX - 1, "user", NULL) == STATUS_OK)
        add_uid(out, (uid_t)number);
    else
        return error_set(err, STATUS_INVALID, "--collector-user: there is no user %.64s", user);
    return STATUS_OK;
}

bool peer_is_trusted(const struct peer_trust *trust, const struct wire_peer *peer)
{
    return peer->kind == PEER_USER && has_uid(trust, peer->uid);
}

// True if only trusted users decide where the path leads: it has no link, nor folder, in which
// another user could have put one.
static bool is_path_trusted(const struct peer_trust *trust, const char *folder)
{
    char path[ADDRESS_TEXT_SIZE];
    struct stat about;
    const char *end = folder;
    while (*end) {
        end += 1 + strcspn(end + 1, "/");
        (void)snprintf(path, sizeof path, "%.*s", (int)(end - folder), folder);
        if (lstat(path, &about) != 0)
            return false;
        const bool is_link = S_ISLNK(about.st_mode);
        const bool may_change =
            !is_link && about.st_mode & WRITABLE_BY_OTHERS && !(about.st_mode & S_ISVTX);
        if ((is_link || *end) && (may_change || !has_uid(trust, about.st_uid)))
            return false;
    }
    return true;
}

static bool is_given_by_root(const struct peer_trust *trust, int fd, const char *folder)
{
    struct stat parent;
    return fstatat(fd, "..", &parent, 0) == 0 && parent.st_uid == 0 &&
           !(parent.st_mode & WRITABLE_BY_OTHERS) && is_path_trusted(trust, folder);
}

static enum status check_folder(struct peer_trust *trust, int fd, const char *folder,
                                struct error *err)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return error_set(err, STATUS_IO, "%s", strerror(errno));
    if (about.st_mode & WRITABLE_BY_OTHERS)
        return error_set(err, STATUS_DENIED,
                         "%s may write to the folder, and could listen there (chmod go-w, or use "
                         "the default folder)",
                         about.st_mode & S_IWOTH ? "any user" : "its group");
    if (is_given_by_root(trust, fd, folder))
        add_uid(trust, about.st_uid);
    if (has_uid(trust, about.st_uid))
        return STATUS_OK;
    return error_set(
        err, STATUS_DENIED,
        "the folder belongs to user %u, who could listen there (use the default folder, or "
        "let clients trust that user with --collector-user)",
        about.st_uid);
}

static enum status check_socket(const struct peer_trust *trust, int fd, const char *socket,
                                struct error *err)
{
    struct stat about;
    if (!socket || fstatat(fd, socket, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
        (S_ISSOCK(about.st_mode) && has_uid(trust, about.st_uid)))
        return STATUS_OK;
    return error_set(
        err, STATUS_DENIED,
        "\"%s\" in the folder is not a socket of a trusted user, but belongs to user %u "
        "(clients trust a user with --collector-user)",
        socket, about.st_uid);
}

enum status peer_open_folder(int *out, struct peer_trust *trust, const char *folder,
                             const char *socket, struct error *err)
{
    const int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, errno == EACCES ? STATUS_DENIED : STATUS_NOT_FOUND,
                         "cannot open the folder: %s", strerror(errno));
    enum status status = check_folder(trust, fd, folder, err);
    if (status == STATUS_OK)
        status = check_socket(trust, fd, socket, err);
    if (status != STATUS_OK) {
        (void)close(fd);
        return status;
    }
    *out = fd;
    return STATUS_OK;
}

static bool is_own_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
           !(about.st_mode & WRITABLE_BY_OTHERS);
}

static bool has_socket(const char *folder)
{
    char path[ADDRESS_TEXT_SIZE];
    const int size =
        snprintf(path, sizeof path, "%s/%s", folder, address_service_name(ADDRESS_INGEST));
    return size < (int)sizeof path && access(path, F_OK) == 0;
}

static enum status use_default_in(struct address *out, const char *runtime_dir, struct error *err)
{
    char text[ADDRESS_TEXT_SIZE + 32];
    (void)snprintf(text, sizeof text, "ipc://%.*s/inferstat", ADDRESS_TEXT_SIZE, runtime_dir);
    return address_parse(out, text, err);
}

enum status peer_default_address(struct address *out, const char *collector,
                                 const char *runtime_dir, bool connects, struct error *err)
{
    static const char users[] = "/run/user/";
    char logged_in[sizeof users + 10];
    const bool is_root = geteuid() == 0;
    if (collector && collector[0]) {
        const enum status status = address_parse(out, collector, err);
        return status == STATUS_OK ? status : error_prefix(err, status, "INFERSTAT_COLLECTOR");
    }
    (void)snprintf(logged_in, sizeof logged_in, "%s%u", users, geteuid());
    if (runtime_dir && (!is_own_folder(runtime_dir) ||
                        (is_root && strncmp(runtime_dir, users, sizeof users - 1) == 0)))
        runtime_dir = NULL;
    if (!runtime_dir && !is_root && is_own_folder(logged_in))
        runtime_dir = logged_in;
    const enum status status = use_default_in(out, runtime_dir ? runtime_dir : "/run", err);
    if (status == STATUS_OK && connects && !has_socket(out->place) && has_socket("/run/inferstat"))
        return use_default_in(out, "/run", err);
    return status;
}

enum status peer_address(struct address *out, const char *text, struct error *err)
{
    return text ? address_parse(out, text, err)
                : peer_default_address(out, getenv("INFERSTAT_COLLECTOR"),
                                       getenv("XDG_RUNTIME_DIR"), true, err);
}
