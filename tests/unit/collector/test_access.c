// Who may do what: the file of keys as it is read, written and read again.
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/collector/access/access.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE];
static struct access *access_now;

TEST_FIXTURE(set_up)
{
    folder_make(folder);
    (void)folder_path(path, folder, "s.db.keys");
    return 0;
}

TEST_FIXTURE(tear_down)
{
    access_close(access_now);
    access_now = NULL;
    folder_remove(folder);
    return 0;
}

static void bytes_of(unsigned char out[WIRE_KEY_SIZE], char letter)
{
    memset(out, letter, WIRE_KEY_SIZE);
}

static const char *key(char letter)
{
    static char texts[8][WIRE_KEY_TEXT_SIZE];
    static unsigned next;
    unsigned char bytes[WIRE_KEY_SIZE];
    bytes_of(bytes, letter);
    return wire_key_text(texts[next++ % 8], bytes);
}

// Writes the file with @x for the key of letter x.
static void write_keys(const char *pattern)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (const char *at = pattern; *at; at++) {
        if (*at == '@')
            assert_true(fputs(key(*++at), file) >= 0);
        else
            assert_true(fputc(*at, file) != EOF);
    }
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0640), 0);
}

static void expect_keys(const char *pattern)
{
    char text[4096] = "", expected[4096];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    (void)!fread(text, 1, sizeof text - 1, file);
    assert_int_equal(fclose(file), 0);
    size_t used = 0;
    for (const char *at = pattern; *at; at++)
        used += (size_t)(*at == '@'
                             ? snprintf(expected + used, sizeof expected - used, "%s", key(*++at))
                             : snprintf(expected + used, sizeof expected - used, "%c", *at));
    expected[used] = '\0';
    assert_string_equal(text, expected);
}

static void open_access(void)
{
    struct error err = {0};
    expect_ok(access_open(&access_now, path, &err), &err);
}

static enum access_verdict verdict(char letter, enum address_service service)
{
    unsigned char bytes[WIRE_KEY_SIZE];
    bytes_of(bytes, letter);
    return access_check(access_now, service, bytes);
}

TEST_CASE(test_roles_open_services)
{
    write_keys("@p producer p\n@r reader r\n@a admin a\n@b producer,reader b\n");
    open_access();
    static const struct {
        char letter;
        enum access_verdict verdicts[ADDRESS_SERVICES]; // ingest, query, live, admin
    } cases[] = {
        {'p', {ACCESS_GRANTED, ACCESS_ROLE, ACCESS_ROLE, ACCESS_ROLE}},
        {'r', {ACCESS_ROLE, ACCESS_GRANTED, ACCESS_GRANTED, ACCESS_ROLE}},
        {'a', {ACCESS_GRANTED, ACCESS_GRANTED, ACCESS_GRANTED, ACCESS_GRANTED}},
        {'b', {ACCESS_GRANTED, ACCESS_GRANTED, ACCESS_GRANTED, ACCESS_ROLE}},
        {'x', {ACCESS_UNKNOWN, ACCESS_UNKNOWN, ACCESS_UNKNOWN, ACCESS_UNKNOWN}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (unsigned s = 0; s < ADDRESS_SERVICES; s++)
            if (verdict(cases[i].letter, (enum address_service)s) != cases[i].verdicts[s])
                fail_msg("key %c at %s", cases[i].letter,
                         address_service_name((enum address_service)s));
}

TEST_CASE(test_files_that_are_not_taken)
{
    struct error err = {0};
    static const mode_t modes[] = {0660, 0642, 0666};
    write_keys("@a admin a\n");
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(access_open(&access_now, path, &err), STATUS_DENIED);
        assert_non_null(strstr(err.text, "chmod go-w"));
    }
    assert_int_equal(chmod(path, 0644), 0); // public keys are no secret
    open_access();
    access_close(access_now);
    access_now = NULL;
    write_keys("# x\n@a boss a\n");
    assert_int_equal(access_open(&access_now, path, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "s.db.keys:2: \"boss\" is no role"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(access_open(&access_now, path, &err), STATUS_INVALID);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); // and it does not wait for a writer
    assert_int_equal(access_open(&access_now, path, &err), STATUS_INVALID);
}

TEST_CASE(test_a_change_is_seen_at_the_next_look)
{
    open_access(); // there is no file yet
    assert_int_equal(verdict('a', ADDRESS_QUERY), ACCESS_UNKNOWN);
    write_keys("@a reader a\n");
    access_poll(access_now);
    assert_int_equal(verdict('a', ADDRESS_QUERY), ACCESS_GRANTED);
    assert_int_equal(access_revocations(access_now), 0);
    write_keys("@a producer a\n@b reader b\n");
    access_poll(access_now);
    assert_int_equal(verdict('a', ADDRESS_QUERY), ACCESS_ROLE);
    assert_int_equal(verdict('b', ADDRESS_QUERY), ACCESS_GRANTED);
    assert_int_equal(access_revocations(access_now), 1);
    access_poll(access_now);
    assert_int_equal(access_revocations(access_now), 1);
}

// A slip of the hand locks nobody out and lets nobody in.
TEST_CASE(test_a_file_that_became_wrong_changes_nothing)
{
    struct error err = {0};
    write_keys("@a reader a\n");
    open_access();
    write_keys("@a reader a\n@b reader a\n");
    access_poll(access_now);
    access_poll(access_now);
    assert_int_equal(verdict('a', ADDRESS_QUERY), ACCESS_GRANTED);
    assert_int_equal(verdict('b', ADDRESS_QUERY), ACCESS_UNKNOWN);
    assert_int_equal(access_reload(access_now, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "the name a of line 1 again"));
    write_keys("@a reader a\n@b reader b\n");
    access_poll(access_now);
    assert_int_equal(verdict('b', ADDRESS_QUERY), ACCESS_GRANTED);
}

// Gone for a moment it is being replaced; gone for longer nobody is authorized.
TEST_CASE(test_a_file_that_is_gone)
{
    write_keys("@a reader a\n");
    open_access();
    assert_int_equal(unlink(path), 0);
    access_poll(access_now);
    assert_int_equal(verdict('a', ADDRESS_QUERY), ACCESS_GRANTED);
    access_poll(access_now);
    assert_int_equal(verdict('a', ADDRESS_QUERY), ACCESS_UNKNOWN);
    assert_int_equal(access_revocations(access_now), 1);
}

static void expect_cell(const struct result *answer, size_t row, const char *column,
                        const char *expected)
{
    const struct value cell = result_cell(answer, row, (unsigned)result_find(answer, column));
    assert_int_equal(cell.type, VALUE_TEXT);
    assert_int_equal(cell.text.size, strlen(expected));
    assert_memory_equal(cell.text.bytes, expected, cell.text.size);
}

static struct query authorize(char letter, uint32_t roles, const char *name)
{
    struct query query = {.kind = QUERY_AUTHORIZE, .key.roles = roles};
    (void)snprintf(query.key.text, sizeof query.key.text, "%s", key(letter));
    (void)snprintf(query.key.name, sizeof query.key.name, "%s", name);
    return query;
}

static struct query revocation(const char *what)
{
    struct query query = {.kind = QUERY_REVOKE};
    (void)snprintf(query.key.text, sizeof query.key.text, "%s", what);
    return query;
}

// Asks; the answer has this name in its only row.
static void ask(const struct query *query, const char *name)
{
    struct error err = {0};
    struct result *answer = NULL;
    expect_ok(access_query(access_now, query, &answer, &err), &err);
    assert_int_equal(result_row_count(answer), 1);
    expect_cell(answer, 0, "name", name);
    result_free(answer);
}

static enum status refusal(const struct query *query, const char *says)
{
    struct error err = {0};
    struct result *answer = NULL;
    const enum status status = access_query(access_now, query, &answer, &err);
    assert_null(answer);
    if (!strstr(err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    return status;
}

TEST_CASE(test_keys_come_and_go)
{
    struct stat st;
    open_access();
    struct query query = authorize('a', 1U << QUERY_ROLE_PRODUCER, "ann");
    ask(&query, "ann");
    expect_keys("@a producer ann\n");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(verdict('a', ADDRESS_INGEST), ACCESS_GRANTED);
    // By hand somebody adds a comment meanwhile, and it stays.
    write_keys("# ours\n@a producer ann\n");
    query = authorize('b', 1U << QUERY_ROLE_PRODUCER, "bob");
    (void)snprintf(query.key.replaces, sizeof query.key.replaces, "%s", key('a'));
    ask(&query, "bob");
    expect_keys("# ours\n@a producer ann\n@b producer bob replaces @a\n");
    assert_int_equal(access_revocations(access_now), 0);
    const struct query all = {.kind = QUERY_KEYS};
    struct result *answer = NULL;
    assert_int_equal(access_query(access_now, &all, &answer, NULL), STATUS_OK);
    assert_int_equal(result_row_count(answer), 2);
    expect_cell(answer, 1, "replaces", key('a'));
    expect_cell(answer, 1, "roles", "producer");
    expect_cell(answer, 0, "key", key('a'));
    result_free(answer);
    query = authorize('b', 1U << QUERY_ROLE_READER, "bob");
    assert_int_equal(access_query(access_now, &query, &answer, NULL), STATUS_OK);
    expect_cell(answer, 0, "roles", "reader");
    expect_cell(answer, 0, "lost_roles", "producer");
    result_free(answer);
    query = revocation("ann");
    ask(&query, "ann");
    expect_keys("# ours\n@b reader bob replaces @a\n");
    assert_int_equal(access_revocations(access_now), 2);
    assert_int_equal(verdict('a', ADDRESS_INGEST), ACCESS_UNKNOWN);
    unsigned char a[WIRE_KEY_SIZE], b[WIRE_KEY_SIZE];
    bytes_of(a, 'a');
    bytes_of(b, 'b');
    assert_true(access_continues(access_now, b, a));
    assert_false(access_continues(access_now, a, b));
    query = revocation(key('b'));
    ask(&query, "bob");
    expect_keys("# ours\n");
}

TEST_CASE(test_changes_that_are_refused)
{
    write_keys("@a producer ann\n");
    open_access();
    struct query query = authorize('b', 1U << QUERY_ROLE_PRODUCER, "ann");
    assert_int_equal(refusal(&query, "another key"), STATUS_INVALID);
    query = revocation("bob");
    assert_int_equal(refusal(&query, "bob"), STATUS_NO_DATA);
    query = revocation("");
    assert_int_equal(refusal(&query, "no key"), STATUS_NO_DATA);
    write_keys("nonsense\n");
    query = authorize('b', 1U << QUERY_ROLE_PRODUCER, "bob");
    assert_int_equal(refusal(&query, "s.db.keys:1"), STATUS_INVALID);
    expect_keys("nonsense\n");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(refusal(&query, "not a file"), STATUS_INVALID);
}

static atomic_bool done;

static void *ask_all_the_time(void *context)
{
    size_t *wrong = context;
    unsigned char a[WIRE_KEY_SIZE], b[WIRE_KEY_SIZE];
    bytes_of(a, 'a');
    bytes_of(b, 'b');
    while (!atomic_load(&done)) {
        *wrong += access_check(access_now, ADDRESS_QUERY, a) != ACCESS_GRANTED;
        *wrong += access_check(access_now, ADDRESS_QUERY, b) == ACCESS_ROLE;
        *wrong += access_continues(access_now, b, a);
    }
    return NULL;
}

TEST_CASE(test_threads_ask_while_it_changes)
{
    pthread_t threads[3];
    size_t wrong[COUNT_OF(threads)] = {0};
    write_keys("@a reader ann\n");
    open_access();
    atomic_store(&done, false);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_all_the_time, &wrong[i]), 0);
    for (int i = 0; i < 50; i++) {
        struct query query = authorize('b', 1U << QUERY_ROLE_READER, "bob");
        ask(&query, "bob");
        query = revocation("bob");
        ask(&query, "bob");
    }
    atomic_store(&done, true);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(wrong[i], 0);
    }
    assert_int_equal(access_revocations(access_now), 50);
}

TEST_MAIN_EACH(set_up, tear_down, test_roles_open_services, test_files_that_are_not_taken,
               test_a_change_is_seen_at_the_next_look,
               test_a_file_that_became_wrong_changes_nothing, test_a_file_that_is_gone,
               test_keys_come_and_go, test_changes_that_are_refused,
               test_threads_ask_while_it_changes)
