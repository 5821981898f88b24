// inferstat doctor
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "client/cli/doctor/doctor.h"
#include "common/store/read/answer_cells.h"
#include "common/sys/clock.h"
#include "common/sys/files.h"
#include "common/wire/keys.h"
#include "common/wire/peer_folder.h"

enum { TEXT_SIZE = 1024, RUNS_LOOKED_AT = 500 };

static const int64_t space_least_bytes = INT64_C(100) << 20, space_low_bytes = INT64_C(1) << 30;
static const int64_t clock_off_ns = 1000000000, day_ns = INT64_C(86400000000000);

// ---- The report -------------------------------------------------------------------

static const struct answer_column keys[] = {
    {"state", UNIT_NONE}, {"check", UNIT_NONE}, {"found", UNIT_NONE}, {"todo", UNIT_NONE}};

static void add_todo(struct table *table, const struct result *result, size_t row)
{
    table_add_cell_below(table, "    what to do: ", result, row, "todo");
}

static const struct column columns[] = {
    {"check", "check", COLUMN_LEFT(0), .is_whole = true},
    {"state", "state", COLUMN_LEFT(0), .is_whole = true},
    {"found", "found", COLUMN_LEFT(0)},
};

static const struct columns view = {columns, sizeof columns / sizeof *columns, add_todo};

void doctor_say(struct doctor *doctor, enum doctor_state state, const char *check, const char *todo,
                const char *found, ...)
{
    static const char *const states[DOCTOR_STATES] = {"ok", "warning", "error"};
    char text[TEXT_SIZE];
    va_list list;
    va_start(list, found);
    (void)vsnprintf(text, sizeof text, found, list);
    va_end(list);
    doctor->counts[state]++;
    answer_row(doctor->report);
    answer_text(doctor->report, "state", states[state]);
    answer_text(doctor->report, "check", check);
    answer_text(doctor->report, "found", text);
    if (todo)
        answer_text(doctor->report, "todo", todo);
}

void doctor_say_space(struct doctor *doctor, const char *check, const char *path,
                      int64_t free_bytes, int64_t size_bytes, int64_t growth_bytes)
{
    char free_text[UNIT_TEXT_SIZE], size[UNIT_TEXT_SIZE], growth[UNIT_TEXT_SIZE], days[64] = "";
    const double left = growth_bytes > 0 ? (double)free_bytes / (double)growth_bytes : (double)NAN;
    const bool is_short = left < 7;
    const enum doctor_state state = free_bytes < space_least_bytes             ? DOCTOR_ERROR
                                    : free_bytes < space_low_bytes || is_short ? DOCTOR_WARNING
                                                                               : DOCTOR_OK;
    if (growth_bytes > 0)
        (void)snprintf(days, sizeof days, ", grows by %s a day",
                       unit_format_int(growth, UNIT_BYTES, growth_bytes));
    doctor_say(doctor, state, check,
               state == DOCTOR_OK ? NULL : "make room, or keep records for less long (--retention)",
               "%s: %s free%s%s%s", path, unit_format_int(free_text, UNIT_BYTES, free_bytes),
               size_bytes > 0 ? ", has " : "",
               size_bytes > 0 ? unit_format_int(size, UNIT_BYTES, size_bytes) : "", days);
}

// ---- The collector ----------------------------------------------------------------

// The folder of an ipc address, and its sockets.
static void check_folder(struct doctor *doctor, const struct address *address)
{
    struct peer_trust trust;
    struct stat info;
    struct error err = {0};
    int fd = -1;
    enum status status = peer_trust_init(&trust, doctor->cli->options.trust.collector_user, &err);
    if (status == STATUS_OK)
        status = peer_open_folder(&fd, &trust, address->place, "query", &err);
    if (status == STATUS_NOT_FOUND) {
        doctor_say(doctor, DOCTOR_ERROR, "folder",
                   "start inferstatd, or name its address with --collector or INFERSTAT_COLLECTOR",
                   "%s: there is none", address->place);
    } else if (status != STATUS_OK) {
        doctor_say(doctor, DOCTOR_ERROR, "folder",
                   "let the folder belong to the collector's user, and no other user write to it "
                   "(chmod 750), or give --collector-user",
                   "%s: %s", address->place, err.text);
    } else if (fstat(fd, &info) == 0 && faccessat(fd, ".", X_OK, AT_EACCESS) != 0) {
        doctor_say(doctor, DOCTOR_ERROR, "folder", "ask as its user, or as one of its group",
                   "%s: permission denied (mode %o, of user %u)", address->place,
                   (unsigned)info.st_mode & 07777U, (unsigned)info.st_uid);
        (void)close(fd);
        fd = -1; // whether it has sockets is unknown
    } else if (fd >= 0) {
        doctor_say(doctor, DOCTOR_OK, "folder", NULL, "%s: mode %o, of user %u", address->place,
                   (unsigned)info.st_mode & 07777U, (unsigned)info.st_uid);
    }
    for (int i = 0; i < (int)ADDRESS_ADMIN && fd >= 0; i++) {
        const char *name = address_service_name((enum address_service)i);
        if (fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISSOCK(info.st_mode))
            doctor_say(doctor, DOCTOR_ERROR, "socket", "start inferstatd with this --listen",
                       "%s/%s: there is none", address->place, name);
        else if (faccessat(fd, name, W_OK, AT_EACCESS) != 0)
            doctor_say(doctor, DOCTOR_ERROR, "socket", "join the group of the socket",
                       "%s/%s: this user may not use it (mode %o)", address->place, name,
                       (unsigned)info.st_mode & 07777U);
        else if (info.st_mode & S_IWOTH)
            doctor_say(doctor, DOCTOR_WARNING, "socket", "chmod 660, unless all users may use it",
                       "%s/%s: every user of the host may use it", address->place, name);
    }
    if (fd >= 0)
        (void)close(fd);
}

// This user's key, which TCP from other hosts needs.
static void check_key(struct doctor *doctor, const struct address *address)
{
    struct trust_source source;
    struct wire_keypair pair;
    struct error err = {0};
    if (trust_source_read(&source, &doctor->cli->options.trust, &err) != STATUS_OK) {
        doctor_say(doctor, DOCTOR_ERROR, "key", "see inferstat-keys(7)", "%s", err.text);
        return;
    }
    const bool is_needed = source.key_is_named || !address_is_local(address);
    const enum status status = keys_read(&pair, source.key_file, &err);
    explicit_bzero(pair.secret_key, sizeof pair.secret_key);
    if (status == STATUS_OK)
        doctor_say(doctor, DOCTOR_OK, "key", NULL, "%s: may be used", source.key_file);
    else if (status == STATUS_NOT_FOUND)
        doctor_say(doctor, is_needed ? DOCTOR_ERROR : DOCTOR_OK, "key",
                   is_needed ? "inferstat keygen, and inferstat authorize at the collector" : NULL,
                   "%s: there is none%s", source.key_file,
                   is_needed ? "" : ", and none is needed on this host");
    else
        doctor_say(doctor, is_needed ? DOCTOR_ERROR : DOCTOR_WARNING, "key",
                   "chmod 600 FILE; if others read it, make another (inferstat keygen --force)",
                   "%s", err.text);
}

// The widest offset of the hosts' clocks from the collector's.
static void check_clocks(struct doctor *doctor, int64_t offset_ns)
{
    const struct query query = {
        .kind = QUERY_RECORDS, .limit = RUNS_LOOKED_AT, .records.kind = RECORD_KIND_RUN};
    struct result *runs = NULL;
    char text[UNIT_TEXT_SIZE], host[QUERY_TEXT_SIZE];
    int64_t widest_ns = 0;
    size_t of = 0;
    if (cli_ask(doctor->cli, &query, &runs, NULL) == STATUS_OK)
        for (size_t row = 0; row < result_row_count(runs); row++) {
            const int64_t ns = result_integer(runs, row, "clock_offset_ns", 0);
            if (llabs(ns) <= llabs(widest_ns) || !result_is(runs, row, "end", "open"))
                continue;
            widest_ns = ns;
            of = row;
        }
    (void)unit_format_int(text, UNIT_DURATION, llabs(widest_ns));
    if (llabs(widest_ns) > clock_off_ns)
        doctor_say(doctor, DOCTOR_WARNING, "clocks", "set the host's clock by NTP (chrony)",
                   "host %s is %s off the collector",
                   result_text(host, sizeof host, runs, of, "host"), text);
    else if (llabs(offset_ns) > clock_off_ns)
        doctor_say(doctor, DOCTOR_WARNING, "clocks", "set this host's clock by NTP (chrony)",
                   "this host is %s off the collector",
                   unit_format_int(text, UNIT_DURATION, llabs(offset_ns)));
    else
        doctor_say(doctor, DOCTOR_OK, "clocks", NULL, "within 1 s of the collector");
    result_free(runs);
}

// True if all records ever stored are still there: else the size says nothing about growth.
static bool is_whole(struct doctor *doctor)
{
    static const char *const removed[] = {"expired", "cleared", "forgotten_runs"};
    struct result *summary = NULL;
    bool is_whole =
        cli_ask(doctor->cli, &(struct query){.kind = QUERY_SUMMARY}, &summary, NULL) == STATUS_OK;
    for (size_t i = 0; i < sizeof removed / sizeof *removed && is_whole; i++)
        is_whole = result_integer(summary, 0, removed[i], 0) == 0;
    result_free(summary);
    return is_whole;
}

// Bytes a day since the oldest run; 0: unknown, as in the first day or once records were removed.
static int64_t growth_of(struct doctor *doctor, int64_t store_bytes)
{
    const struct query query = {.kind = QUERY_RECORDS,
                                .limit = 1,
                                .records = {.kind = RECORD_KIND_RUN, .oldest_first = true}};
    struct result *oldest = NULL;
    int64_t begun_ns = 0;
    if (cli_ask(doctor->cli, &query, &oldest, NULL) == STATUS_OK)
        begun_ns = result_integer(oldest, 0, "started_ns", 0);
    result_free(oldest);
    const int64_t age_ns = doctor->cli->env.now_ns - begun_ns;
    return begun_ns > 0 && age_ns > day_ns && is_whole(doctor)
               ? (int64_t)((double)store_bytes * (double)day_ns / (double)age_ns)
               : 0;
}

// What the collector tells of itself.
static void check_answer(struct doctor *doctor, const struct result *ping, const char *source,
                         int64_t offset_ns)
{
    char version[64], text[TEXT_SIZE];
    const int64_t bytes = result_integer(ping, 0, "store_bytes", 0);
    const int64_t free_bytes = result_integer(ping, 0, "disk_free_bytes", -1);
    (void)result_text(version, sizeof version, ping, 0, "version");
    const bool is_same = strcmp(version, INFERSTAT_VERSION) == 0;
    doctor_say(doctor, is_same ? DOCTOR_OK : DOCTOR_WARNING, "collector",
               is_same ? NULL : "install the same version on both sides",
               "%s: answers, version %s (this client: %s)", source, version, INFERSTAT_VERSION);
    if (result_get(ping, 0, "store_error").type == VALUE_TEXT)
        doctor_say(doctor, DOCTOR_ERROR, "store",
                   "make room or repair the disk; producers keep their records until then",
                   "cannot be written: %s", result_text(text, sizeof text, ping, 0, "store_error"));
    if (free_bytes >= 0)
        doctor_say_space(doctor, "disk", "the collector's store", free_bytes, bytes,
                         growth_of(doctor, bytes));
    check_clocks(doctor, offset_ns);
}

static void check_collector(struct doctor *doctor)
{
    struct cli *cli = doctor->cli;
    struct address address;
    struct error err = {0};
    struct result *ping = NULL;
    const char *source = "";
    if (peer_address(&address, cli->options.collector, &err) != STATUS_OK) {
        doctor_say(doctor, DOCTOR_ERROR, "address", "ipc:///FOLDER or tcp://HOST:PORT", "%s",
                   err.text);
        return;
    }
    if (address.is_ipc)
        check_folder(doctor, &address);
    check_key(doctor, &address);
    const enum status status = cli_ask(cli, &(struct query){.kind = QUERY_PING}, &ping, &err);
    const int64_t offset_ns =
        status == STATUS_OK ? result_integer(ping, 0, "now_ns", 0) - clock_wall_ns() : 0;
    if (status == STATUS_OK && cli_source(cli, &source, &err) == STATUS_OK)
        check_answer(doctor, ping, source, offset_ns);
    else
        doctor_say(doctor, DOCTOR_ERROR, "collector",
                   status == STATUS_DENIED
                       ? "see inferstat-keys(7)"
                       : "start inferstatd there, or name the right address with --collector",
                   "%s", err.text);
    result_free(ping);
}

// ---- A store file -----------------------------------------------------------------

static void check_file(struct doctor *doctor)
{
    const char *path = doctor->cli->options.db;
    char folder[QUERY_PATH_SIZE];
    struct stat info = {0};
    struct statvfs space;
    struct error err = {0};
    const char *source;
    const enum status status = cli_source(doctor->cli, &source, &err);
    if (status != STATUS_OK) {
        doctor_say(doctor, DOCTOR_ERROR, "store", "see Troubleshooting in README", "%s", err.text);
        return;
    }
    (void)stat(path, &info);
    const bool is_open = (info.st_mode & S_IWOTH) != 0;
    doctor_say(doctor, is_open ? DOCTOR_WARNING : DOCTOR_OK, "store",
               is_open ? "chmod o-w FILE" : NULL, "%s: can be read, mode %o%s", path,
               (unsigned)info.st_mode & 07777U, is_open ? ": every user may change it" : "");
    files_folder_of(folder, sizeof folder, path);
    if (statvfs(folder, &space) == 0)
        doctor_say_space(doctor, "disk", folder, (int64_t)(space.f_bavail * space.f_frsize),
                         (int64_t)info.st_size, 0);
}

// ---- The command ------------------------------------------------------------------

enum status command_doctor(struct cli *cli, struct error *err)
{
    struct doctor doctor = {.cli = cli};
    enum status status = answer_new(&doctor.report, keys, sizeof keys / sizeof *keys, err);
    if (status != STATUS_OK)
        return status;
    if (cli->options.db)
        check_file(&doctor);
    else
        check_collector(&doctor);
    doctor_check_host(&doctor);
    status = answer_check(doctor.report, err);
    if (status == STATUS_OK) {
        struct rows rows = cli_rows(cli, &view);
        rows.width = 0; // a terminal wraps what was found
        rows_write(&rows, doctor.report, 0, result_row_count(doctor.report));
        status = rows_end(&rows, status, err);
    }
    result_free(doctor.report);
    if (status == STATUS_OK && doctor.counts[DOCTOR_ERROR] > 0)
        status =
            error_set(err, STATUS_CHECK_FAILED, "doctor: %u error%s, %u warning%s",
                      doctor.counts[DOCTOR_ERROR], cli_plural(doctor.counts[DOCTOR_ERROR]),
                      doctor.counts[DOCTOR_WARNING], cli_plural(doctor.counts[DOCTOR_WARNING]));
    return status;
}
