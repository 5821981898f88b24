// .npy files: headers that are right, headers that are not, reading and writing.
#include "server/workload/encode/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/folder.h"
#include "tests/support/test.h"

// ---- A system of our wishes, in place of the C library's -------------------

static struct {
    int move_fails; // renameat2 and rename do, with this error
    int way_fails;  // renameat2 alone does
    bool sizeless;  // the file system does not say how large it is
    bool mounted;   // every file is a mount point
    int stored;     // how often fsync was called
    mode_t made;    // what a file was like before its mode was set
} wishes;

int fchmod(int fd, mode_t mode)
{
    struct stat info;
    assert_int_equal(fstat(fd, &info), 0);
    wishes.made = info.st_mode & 0777;
    return (int)syscall(SYS_fchmod, fd, mode);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags)
{
    errno = wishes.move_fails ? wishes.move_fails : wishes.way_fails;
    return errno ? -1 : (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

int rename(const char *from, const char *to)
{
    errno = wishes.move_fails;
    return errno ? -1 : renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int fsync(int fd)
{
    wishes.stored++;
    return (int)syscall(SYS_fsync, fd);
}

int fstatvfs(int fd, struct statvfs *out)
{
    (void)fd;
    memset(out, 0, sizeof *out);
    out->f_bsize = out->f_frsize = 4096;
    if (!wishes.sizeless)
        out->f_blocks = out->f_bavail = 1 << 20;
    return 0;
}

int statx(int folder, const char *restrict path, int flags, unsigned int mask,
          struct statx *restrict out)
{
    int code = (int)syscall(SYS_statx, folder, path, flags, mask, out);
    if (code == 0 && wishes.mounted)
        out->stx_attributes |= STATX_ATTR_MOUNT_ROOT;
    return code;
}

static struct error err;

// The bytes of a file of version `major` with this dictionary; returns their number.
static size_t make_file(unsigned char *out, int major, const char *dictionary)
{
    size_t length = strlen(dictionary);
    size_t prefix = major == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)major;
    out[7] = 0;
    memset(out + 8, 0, 4);
    out[8] = (unsigned char)(length & 0xff);
    out[9] = (unsigned char)(length >> 8);
    memcpy(out + prefix, dictionary, length);
    return prefix + length;
}

TEST_CASE(right_headers_are_read)
{
    static const struct {
        int major;
        const char *dictionary;
        enum encode_type type;
        unsigned int dimensions;
        uint64_t rows, columns;
    } cases[] = {
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   \n", ENCODE_F64, 2, 3,
         4},
        {2, "{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }\n", ENCODE_F32, 1, 7, 1},
        {3, "{\"shape\":(1,2),\"descr\":\"<f8\",\"fortran_order\":False}", ENCODE_F64, 2, 1, 2},
        {1, " { 'shape' : ( 5 , 6 , ) , 'fortran_order' : False , 'descr' : '<f4' } ", ENCODE_F32,
         2, 5, 6},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        unsigned char file[512];
        size_t size = make_file(file, cases[i].major, cases[i].dictionary);
        struct npy_header header;
        size_t told = 0;
        assert_int_equal(npy_header_size(&told, file, NPY_PREFIX_SIZE, &err), STATUS_OK);
        assert_int_equal(told, size);
        assert_int_equal(npy_parse(&header, file, size, &err), STATUS_OK);
        assert_int_equal(header.type, cases[i].type);
        assert_int_equal(header.dimensions, cases[i].dimensions);
        assert_int_equal(header.shape[0], cases[i].rows);
        assert_int_equal(header.shape[1], cases[i].columns);
        assert_int_equal(header.data_offset, size);
        assert_int_equal(header.data_size,
                         cases[i].rows * cases[i].columns * encode_type_size(cases[i].type));
    }
}

TEST_CASE(wrong_headers_are_refused)
{
    static const struct {
        int major;
        const char *dictionary;
        enum status status;
        const char *words;
    } cases[] = {
        {1, "{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }", STATUS_UNSUPPORTED,
         "big-endian"},
        {1, "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }", STATUS_UNSUPPORTED,
         "Fortran"},
        {1, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", STATUS_UNSUPPORTED,
         "'<i8'"},
        {1, "{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }", STATUS_UNSUPPORTED,
         "'<f2'"},
        {1, "{'descr': '<c16', 'fortran_order': False, 'shape': (3,), }", STATUS_UNSUPPORTED,
         "'<c16'"},
        {1, "{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (3,), }",
         STATUS_UNSUPPORTED, "records"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", STATUS_UNSUPPORTED,
         "0 dimensions"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 3), }", STATUS_UNSUPPORTED,
         "3 dimensions"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4), }", STATUS_CORRUPT,
         "no numbers"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
         STATUS_CORRUPT, "no file is that large"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693951, 8), }",
         STATUS_CORRUPT, "no file is that large"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999, 1), }",
         STATUS_CORRUPT, "shape makes no sense"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }", STATUS_CORRUPT,
         "shape makes no sense"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3), }", STATUS_CORRUPT,
         "shape makes no sense"},
        {1, "{'descr': '<f8', 'fortran_order': 0, 'shape': (3,), }", STATUS_CORRUPT,
         "order makes no sense"},
        {1, "{'descr': 8, 'fortran_order': False, 'shape': (3,), }", STATUS_CORRUPT,
         "type makes no sense"},
        {1, "{'descr': '<f8', 'fortran_order': False, }", STATUS_CORRUPT, "dictionary"},
        {1, "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (3,)}",
         STATUS_CORRUPT, "dictionary"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'more': 1}", STATUS_CORRUPT,
         "dictionary"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,)} x", STATUS_CORRUPT,
         "dictionary"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,)", STATUS_CORRUPT, "dictionary"},
        {1, "", STATUS_CORRUPT, "dictionary"},
        {4, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", STATUS_UNSUPPORTED,
         "version 4.0"},
        {0, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", STATUS_UNSUPPORTED,
         "version 0.0"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        unsigned char file[512];
        size_t size = make_file(file, cases[i].major, cases[i].dictionary);
        struct npy_header header;
        err = (struct error){0};
        assert_int_equal(npy_parse(&header, file, size < 12 ? 12 : size, &err) == STATUS_OK, 0);
        assert_int_equal(npy_parse(&header, file, size < 12 ? 12 : size, NULL) == STATUS_OK, 0);
        if (size < 12)
            continue;
        if (err.status != cases[i].status || !strstr(err.text, cases[i].words))
            fail_msg("case %zu: %s", i, err.text);
    }
}

// Every cut of a right header, and every change of one of its bytes, is an answer.
TEST_CASE(damaged_headers_are_answered)
{
    unsigned char file[512];
    size_t size =
        make_file(file, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }  \n");
    struct npy_header header;
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *copy = malloc(cut ? cut : 1);
        assert_non_null(copy);
        memcpy(copy, file, cut);
        assert_int_not_equal(npy_parse(&header, copy, cut, NULL), STATUS_OK);
        free(copy);
    }
    for (size_t at = 0; at < size; at++)
        for (int byte = 0; byte < 256; byte++) {
            unsigned char *copy = malloc(size);
            assert_non_null(copy);
            memcpy(copy, file, size);
            copy[at] = (unsigned char)byte;
            if (npy_parse(&header, copy, size, NULL) == STATUS_OK)
                assert_true(header.data_size > 0 && header.data_offset == size);
            free(copy);
        }
    // A length that reaches past what is looked at.
    static const unsigned char huge[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 255, 255, 255, 255};
    size_t told;
    assert_int_equal(npy_header_size(&told, huge, sizeof huge, NULL), STATUS_UNSUPPORTED);
}

// ---- Files ----------------------------------------------------------------

static struct {
    char folder[256];
    char path[300];
} place;

TEST_FIXTURE(place_begin)
{
    err = (struct error){0};
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(place.folder, sizeof place.folder, "%s/inferstat-npy.XXXXXX",
                   tmp && strlen(tmp) < 200 ? tmp : "/tmp");
    assert_non_null(mkdtemp(place.folder));
    (void)snprintf(place.path, sizeof place.path, "%s/x.npy", place.folder);
    return 0;
}

// Fails where anything but the file is left.
TEST_FIXTURE(place_end)
{
    (void)unlink(place.path);
    assert_int_equal(rmdir(place.folder), 0);
    return 0;
}

TEST_CASE(numbers_are_read_from_anywhere)
{
    unsigned char file[512];
    size_t size =
        make_file(file, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }\n");
    double numbers[12];
    for (size_t i = 0; i < 12; i++)
        numbers[i] = (double)i * 1.5;
    memcpy(file + size, numbers, sizeof numbers);
    write_file(place.path, file, size + sizeof numbers);

    struct npy_reader *reader = NULL;
    assert_int_equal(npy_open(&reader, place.path, &err), STATUS_OK);
    assert_int_equal(npy_get_header(reader)->shape[0], 3);
    double read[12] = {0};
    assert_int_equal(npy_read(reader, 0, read, sizeof read, &err), STATUS_OK);
    assert_memory_equal(read, numbers, sizeof read);
    assert_int_equal(npy_read(reader, 88, read, 8, &err), STATUS_OK);
    assert_true(read[0] == 16.5);
    assert_int_equal(npy_read(reader, 88, read, 9, &err), STATUS_INVALID);
    assert_int_equal(npy_read(reader, UINT64_MAX, read, 8, &err), STATUS_INVALID);
    assert_int_equal(truncate(place.path, (off_t)size + 20), 0);
    assert_int_equal(npy_read(reader, 8, read, 16, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "the file ends at byte"));
    npy_close(reader);

    reader = NULL;
    assert_int_equal(npy_open(&reader, place.path, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "truncated: 3 x 4 numbers take 96 bytes, the file has 20"));
    assert_null(reader);
}

TEST_CASE(what_is_no_file_is_refused)
{
    struct npy_reader *reader = NULL;
    assert_int_equal(npy_open(&reader, place.path, &err), STATUS_NOT_FOUND);
    assert_int_equal(npy_open(&reader, place.folder, &err), STATUS_IO);
    assert_int_equal(npy_open(&reader, "/dev/zero", &err), STATUS_IO);
    write_text(place.path, "text");
    assert_int_equal(npy_open(&reader, place.path, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "x.npy: not a .npy file"));
    write_text(place.path, "PK\3\4 a zip of arrays");
    assert_int_equal(npy_open(&reader, place.path, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "x.npy: not a .npy file"));
    assert_null(reader);
    npy_close(NULL);
}

TEST_CASE(states_are_written)
{
    struct npy_writer *writer = NULL;
    const double rows[8] = {1, 0, 0, -1, .5, .5, .5, .5};
    assert_int_equal(npy_create(&writer, place.path, ENCODE_F64, 2, 2, false, &err), STATUS_OK);
    assert_int_equal(npy_append(writer, rows, 32, &err), STATUS_OK);
    assert_int_equal(npy_append(writer, rows + 4, 32, &err), STATUS_OK);
    assert_int_equal(npy_finish(writer, &err), STATUS_OK);

    size_t size;
    char *bytes = read_file(place.path, &size);
    assert_int_equal(size, 128 + 64);
    static const char expected[] =
        "\x93NUMPY\x01\x00v\x00{'descr': '<c16', 'fortran_order': False, 'shape': (2, 2), }";
    assert_memory_equal(bytes, expected, sizeof expected - 1);
    assert_int_equal(bytes[127], '\n');
    assert_memory_equal(bytes + 128, rows, 64);
    free(bytes);
}

static size_t size_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (size_t)info.st_size : 0;
}

// What is there stays until all is there that it is replaced with.
TEST_CASE(outputs_are_replaced_when_they_are_complete)
{
    char part[400];
    char link[400];
    (void)snprintf(part, sizeof part, "%s.part", place.path);
    (void)snprintf(link, sizeof link, "%s/link.npy", place.folder);
    const double row[4] = {1, 0, 0, -1};
    struct npy_writer *writers[2] = {NULL, NULL};
    write_text(place.path, "old");
    assert_int_equal(chmod(place.path, 0640), 0);
    assert_int_equal(symlink("x.npy", link), 0);
    assert_int_equal(npy_create(&writers[0], place.path, ENCODE_F64, 1, 2, false, &err),
                     STATUS_BUSY);
    assert_int_equal(npy_create(&writers[0], place.path, ENCODE_F64, 1, 2, true, &err), STATUS_OK);
    assert_int_equal(npy_append(writers[0], row, 32, &err), STATUS_OK);
    assert_int_equal(size_of(place.path), 3);
    npy_abandon(writers[0]);
    assert_int_equal(size_of(place.path), 3);
    assert_int_equal(access(part, F_OK), -1);

    // Two at once, the one through a link: each is whole, the last one stays.
    assert_int_equal(npy_create(&writers[0], place.path, ENCODE_F64, 1, 2, true, &err), STATUS_OK);
    assert_int_equal(npy_create(&writers[1], link, ENCODE_F32, 1, 2, true, &err), STATUS_OK);
    assert_int_equal(npy_append(writers[0], row, 32, &err), STATUS_OK);
    assert_int_equal(npy_finish(writers[0], &err), STATUS_OK);
    assert_int_equal(size_of(place.path), 128 + 32);
    assert_int_equal(npy_append(writers[1], row, 16, &err), STATUS_OK);
    assert_int_equal(npy_finish(writers[1], &err), STATUS_OK);
    assert_int_equal(size_of(place.path), 128 + 16);
    struct stat info;
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(lstat(place.path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(unlink(link), 0);
}

// That this is all that is left beside the place, and that it is whole; removes it.
static void remove_part(const char *name, size_t size)
{
    char path[400];
    (void)snprintf(path, sizeof path, "%s/%s", place.folder, name);
    assert_int_equal(size_of(path), size);
    assert_int_equal(unlink(path), 0);
}

// A file that appears meanwhile is not replaced either.
TEST_CASE(what_appears_meanwhile_stays)
{
    struct npy_writer *writer = NULL;
    const double row[4] = {1, 0, 0, -1};
    assert_int_equal(npy_create(&writer, place.path, ENCODE_F64, 1, 2, false, &err), STATUS_OK);
    assert_int_equal(npy_append(writer, row, 32, &err), STATUS_OK);
    write_text(place.path, "new");
    assert_int_equal(npy_finish(writer, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "x.npy: cannot create: File exists (the states are in "
                                     "x.npy.part beside it)"));
    assert_int_equal(size_of(place.path), 3);
    npy_abandon(NULL);
    remove_part("x.npy.part", 128 + 32);
}

static enum status write_row(const char *path, bool replace)
{
    const double row[4] = {1, 0, 0, -1};
    struct npy_writer *writer = NULL;
    enum status status = npy_create(&writer, path, ENCODE_F64, 1, 2, replace, &err);
    if (status != STATUS_OK)
        return status;
    assert_int_equal(npy_append(writer, row, 32, &err), STATUS_OK);
    return npy_finish(writer, &err);
}

// A run's work is not thrown away because of a name.
TEST_CASE(what_cannot_go_to_its_place_stays_beside_it)
{
    wishes.move_fails = EBUSY;
    assert_int_equal(write_row(place.path, false), STATUS_IO);
    assert_non_null(strstr(err.text, "(the states are in x.npy.part beside it)"));
    remove_part("x.npy.part", 128 + 32);
    write_text(place.path, "old");
    assert_int_equal(write_row(place.path, true), STATUS_IO);
    assert_int_equal(size_of(place.path), 3);
    remove_part("x.npy.part", 128 + 32);
    wishes.move_fails = 0;
}

// Old kernels, sandboxes and file systems each say it their way.
TEST_CASE(what_moves_only_the_old_way_moves)
{
    static const int codes[] = {EINVAL, ENOSYS, EPERM};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        err = (struct error){0};
        wishes.way_fails = codes[i];
        const int stored = wishes.stored;
        assert_int_equal(write_row(place.path, false), STATUS_OK);
        assert_int_equal(size_of(place.path), 128 + 32);
        assert_int_equal(wishes.stored, stored + 1);
        assert_int_equal(unlink(place.path), 0);

        struct npy_writer *writer = NULL;
        assert_int_equal(npy_create(&writer, place.path, ENCODE_F64, 0, 2, false, &err), STATUS_OK);
        write_text(place.path, "new");
        assert_int_equal(npy_finish(writer, &err), STATUS_IO);
        assert_non_null(strstr(err.text, "File exists"));
        assert_int_equal(size_of(place.path), 3);
        remove_part("x.npy.part", 128);
        wishes.way_fails = 0;
        assert_int_equal(unlink(place.path), 0);
    }
}

// Said at once, not after a run.
TEST_CASE(what_cannot_be_replaced_is_refused)
{
    assert_int_equal(symlink("target.npy", place.path), 0);
    for (int replace = 0; replace < 2; replace++) {
        assert_int_equal(write_row(place.path, replace), STATUS_IO);
        assert_non_null(strstr(err.text, "x.npy: a link to nothing"));
    }
    assert_int_equal(unlink(place.path), 0);

    write_text(place.path, "old");
    wishes.mounted = true;
    assert_int_equal(write_row(place.path, true), STATUS_IO);
    assert_non_null(strstr(err.text, "x.npy: a mount point"));
    wishes.mounted = false;
    if (geteuid() != 0) {
        assert_int_equal(chmod(place.path, 0444), 0);
        assert_int_equal(write_row(place.path, true), STATUS_IO);
        assert_non_null(strstr(err.text, "x.npy: cannot replace: Permission denied"));
    }
    assert_int_equal(size_of(place.path), 3);
}

// What replaces a file that others may not read is never theirs to read.
TEST_CASE(parts_are_private_until_they_have_their_mode)
{
    write_text(place.path, "old");
    assert_int_equal(chmod(place.path, 0604), 0);
    wishes.made = 0;
    assert_int_equal(write_row(place.path, true), STATUS_OK);
    assert_int_equal(wishes.made, 0600);
    struct stat info;
    assert_int_equal(stat(place.path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0604);
}

// The longest names there are leave no room for what parts are called by.
TEST_CASE(long_names_have_parts_too)
{
    for (size_t length = NAME_MAX - 5; length <= NAME_MAX; length++) {
        char path[256 + NAME_MAX + 2];
        (void)snprintf(path, sizeof path, "%s/%0*d", place.folder, (int)length, 0);
        assert_int_equal(write_row(path, false), STATUS_OK);
        assert_int_equal(write_row(path, true), STATUS_OK);
        assert_int_equal(size_of(path), 128 + 32);
        assert_int_equal(unlink(path), 0);
    }
}

TEST_CASE(a_disk_that_knows_no_size_is_written)
{
    wishes.sizeless = true;
    assert_int_equal(write_row(place.path, false), STATUS_OK);
    wishes.sizeless = false;
}

// What has no room is not begun.
TEST_CASE(there_is_room_for_all)
{
    static const uint64_t rows[] = {UINT64_C(1) << 50, UINT64_MAX};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct npy_writer *writer = NULL;
        err = (struct error){0};
        write_text(place.path, "old");
        assert_int_equal(npy_create(&writer, place.path, ENCODE_F64, rows[i], 65536, true, &err),
                         STATUS_IO);
        assert_non_null(strstr(err.text, "are to be written beside what is there, the disk has"));
        assert_null(writer);
        assert_int_equal(size_of(place.path), 3);
    }
}

// A pipe's header cannot be corrected: it is right at once.
TEST_CASE(a_pipe_is_told_how_many_rows_come)
{
    struct npy_writer *writer = NULL;
    const double row[4] = {1, 0, 0, -1};
    char bytes[256];
    assert_int_equal(mkfifo(place.path, 0600), 0);
    int fd = open(place.path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(npy_create(&writer, place.path, ENCODE_F64, 1, 2, false, &err), STATUS_OK);
    assert_int_equal(npy_append(writer, row, 32, &err), STATUS_OK);
    assert_int_equal(npy_finish(writer, &err), STATUS_OK);
    assert_int_equal(read(fd, bytes, sizeof bytes), 128 + 32);
    assert_non_null(strstr(bytes + 10, "'shape': (1, 2)"));
    assert_int_equal(close(fd), 0);
}

TEST_CASE(a_full_disk_is_an_error)
{
    struct npy_writer *writer = NULL;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(npy_create(&writer, "/dev/full", ENCODE_F64, 1, 2, false, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "/dev/full: cannot write: No space left on device"));
    assert_int_equal(npy_create(&writer, "/nowhere/x.npy", ENCODE_F64, 1, 2, false, &err),
                     STATUS_IO);
}

TEST_MAIN_EACH(place_begin, place_end, right_headers_are_read, wrong_headers_are_refused,
               damaged_headers_are_answered, numbers_are_read_from_anywhere,
               what_is_no_file_is_refused, states_are_written,
               outputs_are_replaced_when_they_are_complete, what_appears_meanwhile_stays,
               what_cannot_go_to_its_place_stays_beside_it, what_moves_only_the_old_way_moves,
               what_cannot_be_replaced_is_refused, parts_are_private_until_they_have_their_mode,
               long_names_have_parts_too, a_disk_that_knows_no_size_is_written,
               there_is_room_for_all, a_pipe_is_told_how_many_rows_come, a_full_disk_is_an_error)
