#include "tests/support/test.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "common/sys/config.h"
#include "common/sys/files.h"
#include "common/sys/process.h"
#include "common/sys/stop.h"
#include "tests/support/folder.h"

static char folder[FOLDER_PATH_SIZE];

TEST_FIXTURE(make_folder)
{
    folder_make(folder);
    return 0;
}

TEST_FIXTURE(remove_folder)
{
    folder_remove(folder);
    return 0;
}

static const char *path_of(const char *name)
{
    static char path[FOLDER_PATH_SIZE];
    return folder_path(path, folder, name);
}

struct pairs {
    char text[512];
    const char *refuse;
};

static enum status collect(void *context, const char *key, const char *value, struct error *err)
{
    struct pairs *pairs = context;
    if (pairs->refuse && strcmp(key, pairs->refuse) == 0)
        return error_set(err, STATUS_INVALID, "unknown key \"%s\"", key);
    strcat(pairs->text, key);
    strcat(pairs->text, "=");
    strcat(pairs->text, value);
    strcat(pairs->text, ";");
    return STATUS_OK;
}

TEST_CASE(test_config)
{
    struct pairs pairs = {0};
    struct error err;
    write_text(path_of("a.conf"), "# comment\n\n  listen = ipc:///run/x  \ndb=/a b.db\n\tempty =\n"
                                  "equals = a=b\nlast = 1");
    assert_int_equal(config_read(path_of("a.conf"), collect, NULL, &pairs, &err), STATUS_OK);
    assert_string_equal(pairs.text, "listen=ipc:///run/x;db=/a b.db;empty=;equals=a=b;last=1;");

    pairs.refuse = "db";
    char line[10000] = "";
    memset(line, 'x', sizeof line - 1);
    const char *const wrong[][2] = {{"# comment\ndb=/a b.db\n", "a.conf:2: unknown key"},
                                    {"good = 1\nno equals sign\n", "a.conf:2"},
                                    {"= value\n", "a.conf:1"},
                                    {line, "a.conf:1: line is longer"}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        write_text(path_of("a.conf"), wrong[i][0]);
        assert_int_equal(config_read(path_of("a.conf"), collect, NULL, &pairs, &err),
                         STATUS_INVALID);
        assert_non_null(strstr(err.text, wrong[i][1]));
    }
    assert_int_equal(config_read(path_of("none.conf"), collect, NULL, &pairs, &err),
                     STATUS_NOT_FOUND);
    assert_int_equal(config_read(folder, collect, NULL, &pairs, &err), STATUS_IO);
}

static void keep_complaint(void *context, const struct error *why)
{
    struct pairs *pairs = context;
    const char *name = strrchr(why->text, '/');
    const size_t used = strlen(pairs->text);
    (void)snprintf(pairs->text + used, sizeof pairs->text - used, "[%.*s]",
                   (int)strcspn(name + 1, " "), name + 1);
}

// A refused line spoils only itself, a line that is too long included.
TEST_CASE(test_config_leniently)
{
    struct pairs pairs = {.refuse = "db"};
    struct error err;
    char text[5100] = "a = 1\nno equals sign\ndb = x\n";
    const size_t used = strlen(text);
    memset(text + used, 'x', 5000);
    (void)snprintf(text + used + 5000, sizeof text - used - 5000, "\nb = 2\n= 3\n");
    write_text(path_of("e.conf"), text);
    assert_int_equal(config_read(path_of("e.conf"), collect, keep_complaint, &pairs, &err),
                     STATUS_OK);
    assert_string_equal(pairs.text, "a=1;[e.conf:2:][e.conf:3:][e.conf:4:]b=2;[e.conf:6:]");
    assert_int_equal(config_read(path_of("none.conf"), collect, keep_complaint, &pairs, &err),
                     STATUS_NOT_FOUND);
    assert_int_equal(config_read(folder, collect, keep_complaint, &pairs, &err), STATUS_IO);
}

TEST_CASE(test_folders)
{
    struct error err;
    char path[256];
    assert_int_equal(files_join(path, sizeof path, folder, "one/two/three", &err), STATUS_OK);
    assert_int_equal(files_make_folder(path, 0750, &err), STATUS_OK);
    assert_int_equal(files_make_folder(path, 0750, &err), STATUS_OK);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISDIR(info.st_mode));
    assert_int_equal(info.st_mode & 0777 & ~0750U, 0);

    write_text(path_of("file"), "");
    assert_int_equal(files_make_folder(path_of("file"), 0750, &err), STATUS_INVALID);
    assert_int_equal(files_make_folder(path_of("file/below"), 0750, &err), STATUS_IO);
    assert_int_equal(files_make_folder("", 0750, &err), STATUS_INVALID);
    char small[8];
    assert_int_equal(files_join(small, sizeof small, folder, "x", &err), STATUS_FULL);
}

// A relative path is to be ignored (XDG base directory specification).
TEST_CASE(test_folders_of_the_user)
{
    const bool is_root = geteuid() == 0;
    const struct {
        enum status (*find)(char *out, size_t size, struct error *err);
        const char *variable, *value, *home, *path; // NULL: none
    } cases[] = {
        {files_data_folder, "XDG_DATA_HOME", "/data", "", "/data/inferstat"},
        {files_data_folder, "XDG_DATA_HOME", "data", "/home/someone",
         is_root ? "/var/lib/inferstat" : "/home/someone/.local/share/inferstat"},
        {files_cache_folder, "XDG_CACHE_HOME", "/cache", "", "/cache/inferstat"},
        {files_cache_folder, "XDG_CACHE_HOME", "cache", "/home/someone",
         "/home/someone/.cache/inferstat"},
        {files_cache_folder, "XDG_CACHE_HOME", "cache", "", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char path[256];
        assert_int_equal(setenv(cases[i].variable, cases[i].value, 1), 0);
        assert_int_equal(setenv("HOME", cases[i].home, 1), 0);
        const enum status status = cases[i].find(path, sizeof path, NULL);
        assert_int_equal(status, cases[i].path ? STATUS_OK : STATUS_NOT_FOUND);
        if (cases[i].path)
            assert_string_equal(path, cases[i].path);
    }
}

TEST_CASE(test_process)
{
    assert_true(process_memory_bytes() > 100 * 1024);
    const uint64_t cpu = process_cpu_ns();
    volatile double sink = 0;
    for (int i = 0; i < 3000000; i++)
        sink = sink + i;
    assert_true(process_cpu_ns() > cpu);
    // One thread cannot have used more time than has passed; the test takes no hour.
    const uint64_t used = process_cpu_ns(), age = process_age_ns();
    assert_true(age >= used && age < UINT64_C(3600000000000));

    unsigned char a[16] = {0}, b[16] = {0};
    assert_int_equal(process_random(a, sizeof a, NULL), STATUS_OK);
    assert_int_equal(process_random(b, sizeof b, NULL), STATUS_OK);
    assert_memory_not_equal(a, b, sizeof a);

    struct process_host host;
    assert_int_equal(setenv("INFERSTAT_HOST", "node7", 1), 0);
    process_host_read(&host);
    assert_string_equal(host.host, "node7");
    assert_true(host.cpu_count >= 1 && host.memory_bytes > 0);
    assert_true(strlen(host.kernel) > 0 && strlen(host.os) > 0);
}

// Files of /proc and /sys/fs/cgroup, in folders of their own.
TEST_CASE(test_limits)
{
    static const int64_t MB = 1024 * 1024, HOST = 8192 * 1024 * INT64_C(1024);
    static const char meminfo[] =
        "MemTotal: 16777216 kB\nMemFree: 5 kB\nMemAvailable: 8388608 kB\n";
#define V2 "sys/fs/cgroup"
    static const struct {
        const char *files[10][2];
        int64_t memory;
        const char *cgroup;
        int64_t cpus;
    } cases[] = {
        {{{NULL}}, -1, "", 0},
        {{{"proc/meminfo", meminfo}}, HOST, "", 0},
        {{{"proc/meminfo", meminfo}, {"proc/self/cgroup", "nothing\n1:\n"}}, HOST, "", 0},
        // v2: what is left, cached files free; a quota rounded up.
        {{{"proc/meminfo", meminfo},
          {"proc/self/cgroup", "0::/a\n"},
          {V2 "/a/memory.max", "1073741824\n"},
          {V2 "/a/memory.current", "524288000\n"},
          {V2 "/a/memory.stat", "anon 1\nfile 4\ninactive_file 104857600\nactive_file 209715200\n"},
          {V2 "/a/cpu.max", "150000 100000\n"}},
         824 * MB,
         "/a",
         2},
        // An ancestor is stricter; "max" is none.
        {{{"proc/meminfo", meminfo},
          {"proc/self/cgroup", "0::/a/b\n"},
          {V2 "/a/memory.max", "104857600\n"},
          {V2 "/a/memory.current", "209715200\n"},
          {V2 "/a/b/memory.max", "max\n"},
          {V2 "/a/b/memory.current", "209715200\n"},
          {V2 "/a/cpu.max", "300000 100000\n"},
          {V2 "/a/b/cpu.max", "max 100000\n"}},
         0,
         "/a",
         3},
        // The host has less than the cgroup allows.
        {{{"proc/meminfo", meminfo},
          {"proc/self/cgroup", "0::/\n"},
          {V2 "/memory.max", "17179869184"},
          {V2 "/memory.current", "0"},
          {V2 "/cpu.max", "1000 100000"}},
         HOST,
         "",
         1},
        // v1, each controller with a path of its own; the cache may be counted after the usage.
        {{{"proc/meminfo", meminfo},
          {"proc/self/cgroup", "9:memory:/m/x\n3:cpu,cpuacct:/c\n1:name=systemd:/\n0::/\n"},
          {V2 "/memory/memory.limit_in_bytes", "9223372036854771712\n"},
          {V2 "/memory/memory.usage_in_bytes", "1000000\n"},
          {V2 "/memory/m/x/memory.limit_in_bytes", "1048576\n"},
          {V2 "/memory/m/x/memory.usage_in_bytes", "4096\n"},
          {V2 "/memory/m/x/memory.stat", "inactive_file 1\ntotal_inactive_file 8192\n"},
          {V2 "/cpu,cpuacct/c/cpu.cfs_quota_us", "400000\n"},
          {V2 "/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n"},
          {V2 "/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"}},
         MB,
         "/m/x",
         4},
        // In a container the path is that on the host, and only the root is there.
        {{{"proc/self/cgroup", "4:memory:/docker/abc\n"},
          {V2 "/memory/memory.limit_in_bytes", "2097152\n"},
          {V2 "/memory/memory.usage_in_bytes", "1048576\n"}},
         MB,
         "/",
         0},
    };
#undef V2
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char root[FOLDER_PATH_SIZE];
        (void)snprintf(root, sizeof root, "%s-%zu", path_of("limits"), i);
        for (size_t j = 0; j < COUNT_OF(cases[i].files) && cases[i].files[j][0]; j++) {
            char path[FOLDER_PATH_SIZE + 80], parent[sizeof path];
            (void)snprintf(path, sizeof path, "%s/%s", root, cases[i].files[j][0]);
            files_folder_of(parent, sizeof parent, path);
            assert_int_equal(files_make_folder(parent, 0700, NULL), STATUS_OK);
            write_text(path, cases[i].files[j][1]);
        }
        struct process_limits limits;
        process_limits_read(&limits, root);
        if (limits.memory_available_bytes != cases[i].memory || limits.cpu_quota != cases[i].cpus)
            fail_msg("%zu: %lld bytes, %lld processors", i,
                     (long long)limits.memory_available_bytes, (long long)limits.cpu_quota);
        assert_string_equal(limits.memory_cgroup, cases[i].cgroup);
    }
}

// The line that the driver's module shows; none where there is no module, or nothing in it.
TEST_CASE(test_driver)
{
    static const struct {
        const char *text, *driver;
    } cases[] = {{"550.54.14\n", "550.54.14"}, {"570.1", "570.1"}, {"", ""}, {"\n", ""}};
    char driver[PROCESS_TEXT_SIZE] = "x";
    process_driver_read(driver, path_of("no-module"));
    assert_string_equal(driver, "");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        write_text(path_of("version"), cases[i].text);
        process_driver_read(driver, path_of("version"));
        assert_string_equal(driver, cases[i].driver);
    }
}

// The mode that the kernel marks, and reserved pages; nothing where there is no such file.
TEST_CASE(test_settings)
{
    static const struct {
        const char *mode, *reserved, *governor, *huge_pages;
    } cases[] = {{"always [madvise] never\n", "0\n", "performance\n", "madvise"},
                 {"[always] madvise never\n", "512\n", "", "always, 512 reserved"},
                 {"always madvise [never", "max\n", "powersave", "never"},
                 {"always\n", "512\n", "\n", ""},
                 {"[]\n", "512\n", "\n", ""},
                 {"", "", "", ""}};
    static const char *const files[] = {"sys/kernel/mm/transparent_hugepage/enabled",
                                        "proc/sys/vm/nr_hugepages",
                                        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"};
    struct process_settings settings;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *const texts[] = {cases[i].mode, cases[i].reserved, cases[i].governor};
        for (size_t j = 0; j < COUNT_OF(files); j++) {
            char path[FOLDER_PATH_SIZE + 80], parent[sizeof path];
            (void)snprintf(path, sizeof path, "%s/%s", folder, files[j]);
            files_folder_of(parent, sizeof parent, path);
            assert_int_equal(files_make_folder(parent, 0700, NULL), STATUS_OK);
            write_text(path, texts[j]);
        }
        process_settings_read(&settings, folder);
        assert_string_equal(settings.huge_pages, cases[i].huge_pages);
        assert_memory_equal(settings.cpu_governor, cases[i].governor,
                            strcspn(cases[i].governor, "\n"));
    }
    process_settings_read(&settings, path_of("nothing"));
    assert_string_equal(settings.huge_pages, "");
    assert_string_equal(settings.cpu_governor, "");
    // A sanitizer has a malloc of its own.
    assert_true(strncmp(settings.allocator, "glibc ", 6) == 0 ||
                strcmp(settings.allocator, "musl") == 0 || strstr(settings.allocator, "san") ||
                strcmp(settings.allocator, "test_sys") == 0);
    assert_true(strstr(settings.build_flags, " gcc ") || strstr(settings.build_flags, " clang "));
    assert_non_null(strchr(settings.build_flags, '-'));
}

TEST_CASE(test_clock)
{
    const uint64_t before = clock_monotonic_ns();
    clock_sleep_until_ns(before + 2000000);
    assert_true(clock_monotonic_ns() >= before + 2000000);
    assert_true(clock_wall_ns() > INT64_C(1700000000000000000));
}

TEST_CASE(test_stop)
{
    struct error err;
    assert_int_equal(stop_install(&err), STATUS_OK);
    assert_false(stop_requested());
    assert_int_equal(raise(SIGTERM), 0);
    assert_true(stop_requested());
    assert_int_equal(raise(SIGINT), 0); // a second wish changes nothing
    char byte;
    assert_int_equal(read(stop_fd(), &byte, 1), 1);
    assert_int_equal(raise(SIGPIPE), 0);
}

// What nohup and shells ignore on a program's behalf stays ignored; what they do
// not is a wish to stop.  In a child, whose handlers are still the system's.
TEST_CASE(test_stop_ignored)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    for (unsigned ignored = 0; ignored < 3; ignored++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (unsigned i = 0; i < 3; i++)
                (void)signal(signals[i], i == ignored ? SIG_IGN : SIG_DFL);
            bool good = stop_install(NULL) == STATUS_OK;
            (void)raise(signals[ignored]);
            good = good && !stop_requested();
            (void)raise(signals[(ignored + 1) % 3]);
            _exit(good && stop_requested() ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

// A file that another put under the name of the temporary file is not written to.
TEST_CASE(test_output)
{
    char other[256], name[64];
    struct output output;
    struct stat info;
    (void)snprintf(other, sizeof other, "%s", path_of("other"));
    (void)snprintf(name, sizeof name, "out.tmp-%ld", (long)getpid());
    write_text(other, "text");
    assert_int_equal(link(other, path_of(name)), 0);
    assert_int_equal(output_open(&output, path_of("out"), NULL), STATUS_OK);
    assert_int_equal(output_close(&output, STATUS_OK, NULL), STATUS_OK);
    assert_int_equal(stat(other, &info), 0);
    assert_int_equal(info.st_size, 4);
    assert_int_equal(stat(path_of("out"), &info), 0);
    assert_int_equal(info.st_size, 0);
}

TEST_MAIN_ONCE(make_folder, remove_folder, test_output, test_config, test_config_leniently,
               test_folders, test_process, test_limits, test_driver, test_settings, test_clock,
               test_folders_of_the_user, test_stop_ignored, test_stop)
