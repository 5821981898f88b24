// The list of keys that may connect: its file read, its lines changed.

#include "server/collector/access/access_list.h"
#include "tests/support/test.h"

// A key for each letter: 40 times the same, or so.
static const char *key(char letter)
{
    static char texts[8][WIRE_KEY_TEXT_SIZE];
    static unsigned next;
    unsigned char bytes[WIRE_KEY_SIZE];
    memset(bytes, letter, sizeof bytes);
    return wire_key_text(texts[next++ % 8], bytes);
}

static void key_bytes(unsigned char out[WIRE_KEY_SIZE], char letter)
{
    memset(out, letter, WIRE_KEY_SIZE);
}

static char text[4096];

// Makes `text` from a pattern in which @x is the key of letter x.
static const char *lines(const char *pattern)
{
    size_t used = 0;
    for (const char *at = pattern; *at; at++) {
        const int n = *at == '@' ? snprintf(text + used, sizeof text - used, "%s", key(at[1]))
                                 : snprintf(text + used, sizeof text - used, "%c", *at);
        assert_true(n > 0 && (size_t)n < sizeof text - used);
        used += (size_t)n;
        at += *at == '@';
    }
    text[used] = '\0';
    return text;
}

static void parse(struct access_list *list, const char *pattern)
{
    struct error err = {0};
    (void)lines(pattern);
    expect_ok(access_list_parse(list, text, strlen(text), "keys", &err), &err);
}

static const struct access_key *find(const struct access_list *list, char letter)
{
    unsigned char bytes[WIRE_KEY_SIZE];
    key_bytes(bytes, letter);
    return access_list_find(list, bytes);
}

static bool continues(const struct access_list *list, char letter, char owner)
{
    unsigned char a[WIRE_KEY_SIZE], b[WIRE_KEY_SIZE];
    key_bytes(a, letter);
    key_bytes(b, owner);
    return access_list_continues(list, a, b);
}

TEST_CASE(test_what_lines_say)
{
    struct access_list list;
    parse(&list, "# who may connect\n\n  @b\tproducer worker-1 replaces @x replaces @y\r\n"
                 "#@a producer out-commented\n# @a reader out-commented-too\n"
                 "########################################\n"
                 "@a reader,admin Ann.B_c-9 expires 2027-02-20T00:00:00Z");
    assert_int_equal(list.count, 2);
    assert_null(find(&list, 'c'));
    const struct access_key *worker = find(&list, 'b');
    assert_non_null(worker);
    assert_int_equal(worker->roles, 1U << QUERY_ROLE_PRODUCER);
    assert_string_equal(worker->name, "worker-1");
    assert_int_equal(worker->replaces_count, 2);
    assert_int_equal(worker->line, 3);
    assert_int_equal(worker->expires_ns, 0);
    assert_int_equal(find(&list, 'a')->expires_ns, INT64_C(1803081600000000000));
    assert_int_equal(find(&list, 'a')->roles, 1U << QUERY_ROLE_READER | 1U << QUERY_ROLE_ADMIN);
    assert_ptr_equal(access_list_named(&list, "Ann.B_c-9"), find(&list, 'a'));
    assert_null(access_list_named(&list, "ann.b_c-9"));
    access_list_deinit(&list);
    parse(&list, "");
    assert_int_equal(list.count, 0);
    assert_null(find(&list, 'a'));
    access_list_deinit(&list);
}

TEST_CASE(test_lines_that_are_wrong)
{
    static const struct {
        const char *pattern, *says;
    } cases[] = {
        {"\nsomething producer name\n", "keys:2: \"something\" is no public key"},
        {"@a\n", "keys:1: KEY ROLES NAME"},
        {"@a producer\n", "keys:1: KEY ROLES NAME"},
        {"@a x name\n", "\"x\" is no role (producer"},
        {"@a producer, name\n", "no list of roles"},
        {"@a ,producer name\n", "no list of roles"},
        {"@a producer,,reader name\n", "no list of roles"},
        {"@a , name\n", "no list of roles"},
        {"@a PRODUCER name\n", "no role"},
        {"@a producer na/me\n", "\"na/me\" is no name (1 to 63"},
        {"@a producer 0123456789012345678901234567890123456789012345678901234567890123\n",
         "is no name"},
        {"@a producer name since\n", "\"replaces\" and a key"},
        {"@a producer name replaces\n", "\"replaces\" and a key"},
        {"@a producer name replaced @b\n", "\"replaces\" is expected"},
        {"@a producer name replaces b\n", "\"b\" is no public key"},
        {"@a producer name replaces @a\n", "replace itself"},
        {"@a producer name expires\n", "or \"expires\" and a time"},
        {"@a producer name expires 90d\n", "expires: \"90d\" is no time such as 2027-02-20T00:00"},
        {"@a producer name expires 1969-01-01T00:00:00Z\n", "is no time"},
        {"@a producer name expires 2027-02-20\n", "is no time"},
        {"@a producer name expires 2027-02-20T00:00:00Z replaces @b\n", "\"replaces\" is expected"},
        {"@a producer one\n# x\n@a reader two\n", "keys:3: the key of line 1 again"},
        {"@b producer one\n# x\n@a reader one\n", "keys:3: the name one of line 1 again"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct access_list list;
        struct error err = {0};
        (void)lines(cases[i].pattern);
        assert_int_equal(access_list_parse(&list, text, strlen(text), "keys", &err),
                         STATUS_INVALID);
        assert_int_equal(list.count, 0);
        if (strncmp(err.text, "keys:", 5) != 0 || !strstr(err.text, cases[i].says))
            fail_msg("\"%s\": \"%s\" does not say \"%s\"", cases[i].pattern, err.text,
                     cases[i].says);
    }
}

TEST_CASE(test_sizes_at_their_edges)
{
    struct access_list list;
    struct error err = {0};
    static char long_line[3 * ACCESS_LINE_MAX];
    memset(long_line, ' ', sizeof long_line);
    memcpy(long_line, key('a'), WIRE_KEY_TEXT_SIZE - 1);
    memcpy(long_line + 50, "producer name", 13);
    assert_int_equal(access_list_parse(&list, long_line, ACCESS_LINE_MAX, "keys", &err), STATUS_OK);
    assert_int_equal(list.count, 1);
    access_list_deinit(&list);
    assert_int_equal(access_list_parse(&list, long_line, ACCESS_LINE_MAX + 1, "keys", &err),
                     STATUS_INVALID);
    assert_non_null(strstr(err.text, "keys:1: the line has more than"));
    long_line[0] = '#'; // a comment may be as long as it likes
    long_line[1] = ' ';
    assert_int_equal(access_list_parse(&list, long_line, sizeof long_line, "keys", &err),
                     STATUS_OK);
    assert_int_equal(access_list_parse(&list, "a\0b", 3, "keys", &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "NUL"));
    size_t used = (size_t)snprintf(text, sizeof text, "%s producer name", key('a'));
    for (int i = 0; i < ACCESS_REPLACES_MAX; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, " replaces %s", key((char)('b' + i)));
    assert_int_equal(access_list_parse(&list, text, used, "keys", &err), STATUS_OK);
    assert_int_equal(list.keys[0].replaces_count, ACCESS_REPLACES_MAX);
    access_list_deinit(&list);
    used += (size_t)snprintf(text + used, sizeof text - used, " replaces %s", key('z'));
    assert_int_equal(access_list_parse(&list, text, used, "keys", &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "more than 16"));
}

TEST_CASE(test_a_run_goes_on_with_the_key_that_replaces)
{
    struct access_list list;
    parse(&list, "@a producer a\n@b producer b replaces @a\n"
                 "@c producer c replaces @b replaces @a\n@x producer x replaces @b\n"
                 "@d producer d replaces @e\n@e producer e replaces @d\n");
    assert_true(continues(&list, 'a', 'a'));
    assert_true(continues(&list, 'b', 'a'));
    assert_true(continues(&list, 'c', 'a'));
    assert_false(continues(&list, 'a', 'b'));
    assert_false(continues(&list, 'd', 'a')); // and round in circles not for ever
    assert_true(continues(&list, 'd', 'e'));
    assert_false(continues(&list, 'x', 'a')); // its line does not say so
    assert_false(continues(&list, 'y', 'a'));
    access_list_deinit(&list);
}

// Each replaces all others: whoever walked from one to the next would not be back.
TEST_CASE(test_a_mesh_is_looked_at_at_once)
{
    const char last = (char)('a' + ACCESS_REPLACES_MAX);
    static char mesh[(ACCESS_REPLACES_MAX + 1) * (ACCESS_LINE_MAX + 1)];
    size_t used = 0;
    for (char own = 'a'; own <= last; own++) {
        used += (size_t)snprintf(mesh + used, sizeof mesh - used, "%s producer %c", key(own), own);
        for (char other = 'a'; other <= last; other++)
            if (other != own)
                used +=
                    (size_t)snprintf(mesh + used, sizeof mesh - used, " replaces %s", key(other));
        used += (size_t)snprintf(mesh + used, sizeof mesh - used, "\n");
    }
    struct access_list list;
    struct error err = {0};
    expect_ok(access_list_parse(&list, mesh, used, "keys", &err), &err);
    assert_true(continues(&list, 'a', 'q'));
    assert_false(continues(&list, 'a', 'z'));
    access_list_deinit(&list);
}

TEST_CASE(test_what_takes_something_away)
{
    static const struct {
        const char *before, *after;
        bool expected;
    } cases[] = {
        {"", "", false},
        {"", "@a producer a\n", false},
        {"@a producer a\n", "", true},
        {"@a producer a\n", "@b producer a\n", true},
        {"@a producer a\n", "@a producer,reader other\n", false},
        {"@a producer,reader a\n", "@a producer a\n@b reader b\n", true},
        {"@a producer a\n", "@a producer a\n@b reader b\n", false},
        {"@a producer,reader a\n", "@a admin a\n", false}, // which includes both
        {"@a producer,admin a\n", "@a producer a\n", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct access_list before, after;
        parse(&before, cases[i].before);
        parse(&after, cases[i].after);
        assert_int_equal(access_list_revokes(&before, &after), cases[i].expected);
        access_list_deinit(&before);
        access_list_deinit(&after);
    }
}

static struct query wish(char letter, uint32_t roles, const char *name, char replaces)
{
    struct query query = {.kind = QUERY_AUTHORIZE, .key.roles = roles};
    (void)snprintf(query.key.text, sizeof query.key.text, "%s", key(letter));
    (void)snprintf(query.key.name, sizeof query.key.name, "%s", name);
    if (replaces)
        (void)snprintf(query.key.replaces, sizeof query.key.replaces, "%s", key(replaces));
    return query;
}

static void expect_with(const char *before, const struct query *query, const char *after)
{
    struct access_list list;
    struct error err = {0};
    char *changed = NULL;
    parse(&list, before);
    if (access_text_with(&changed, text, strlen(text), &list, query, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_string_equal(changed, lines(after));
    free(changed);
    access_list_deinit(&list);
}

TEST_CASE(test_lines_are_added_and_replaced)
{
    static const uint32_t both = 1U << QUERY_ROLE_PRODUCER | 1U << QUERY_ROLE_READER;
    struct query query = wish('a', both, "ann", 0);
    expect_with("", &query, "@a producer,reader ann\n");
    expect_with("# none yet", &query, "# none yet\n@a producer,reader ann\n");
    expect_with("# one\n@b admin bob\n\n", &query,
                "# one\n@b admin bob\n\n@a producer,reader ann\n");
    expect_with("# one\n@a admin bob\n# two\n", &query, "# one\n@a producer,reader ann\n# two\n");
    expect_with("@a admin ann", &query, "@a producer,reader ann\n");
    expect_with("@a admin x replaces @c", &query, "@a producer,reader ann replaces @c\n");
    query = wish('a', 1, "ann", 'b');
    expect_with(
        "@b producer bob replaces @c replaces @a\n", &query,
        "@b producer bob replaces @c replaces @a\n@a producer ann replaces @b replaces @c\n");
    expect_with("@a producer ann replaces @b\n", &query, "@a producer ann replaces @b\n");
    query.key.expires_ns = INT64_C(1803081600999999999);
    expect_with("@a producer ann replaces @b expires 2026-12-31T00:00:00Z\n", &query,
                "@a producer ann replaces @b expires 2027-02-20T00:00:00Z\n");
    query.key.expires_ns = 0;
}

TEST_CASE(test_lines_are_taken_out)
{
    static const struct {
        const char *before;
        unsigned line;
        const char *after;
    } cases[] = {
        {"@a admin a\n", 1, ""},
        {"# x\n@a admin a\n# y\n", 2, "# x\n# y\n"},
        {"# x\n@a admin a", 2, "# x\n"},
        {"@a admin a\n\n", 1, "\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *changed = NULL;
        (void)lines(cases[i].before);
        assert_int_equal(access_text_without(&changed, text, strlen(text), cases[i].line, NULL),
                         STATUS_OK);
        assert_string_equal(changed, lines(cases[i].after));
        free(changed);
    }
}

static enum status refusal(const struct access_list *list, const struct query *query,
                           struct error *err)
{
    char *changed = NULL;
    return access_text_with(&changed, text, strlen(text), list, query, err);
}

TEST_CASE(test_wishes_that_are_refused)
{
    struct access_list list;
    struct error err = {0};
    parse(&list, "@b producer bob\n");
    struct query query = wish('a', 1, "bob", 'b');
    assert_int_equal(refusal(&list, &query, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "another key"));
    query = wish('a', 0, "ann", 0);
    assert_int_equal(refusal(&list, &query, &err), STATUS_INVALID);
    query = wish('a', 1U << QUERY_ROLE_COUNT, "ann", 0);
    assert_int_equal(refusal(&list, &query, &err), STATUS_INVALID);
    query = wish('a', 1, "a b", 0);
    assert_int_equal(refusal(&list, &query, &err), STATUS_INVALID);
    query = wish('a', 1, "", 0);
    assert_int_equal(refusal(&list, &query, &err), STATUS_INVALID);
    query = wish('a', 1, "ann", 'a');
    assert_int_equal(refusal(&list, &query, &err), STATUS_INVALID);
    query = wish('a', 1, "ann", 0);
    query.key.text[39] = ' ';
    assert_int_equal(refusal(&list, &query, &err), STATUS_INVALID);
    access_list_deinit(&list);
}

// However often a key is replaced, the next time works, and the latest are known.
TEST_CASE(test_rotations_do_not_end)
{
    struct access_list list;
    struct error err = {0};
    char *now = strdup(lines("@a producer name-a\n"));
    const char last = 'z';
    for (char next = 'b'; next <= last; next++) {
        char name[] = {'n', next, '\0'}, *changed = NULL;
        const struct query query = wish(next, 1, name, (char)(next - 1));
        assert_int_equal(access_list_parse(&list, now, strlen(now), "keys", &err), STATUS_OK);
        if (access_text_with(&changed, now, strlen(now), &list, &query, &err) != STATUS_OK)
            fail_msg("%c: %s", next, err.text);
        access_list_deinit(&list);
        free(now);
        now = changed;
    }
    assert_int_equal(access_list_parse(&list, now, strlen(now), "keys", &err), STATUS_OK);
    assert_int_equal(find(&list, 'z')->replaces_count, ACCESS_REPLACES_MAX);
    for (char before = 'a'; before < last; before++)
        assert_int_equal(continues(&list, 'z', before), before >= 'z' - ACCESS_REPLACES_MAX);
    access_list_deinit(&list);
    free(now);
}

TEST_MAIN(test_what_lines_say, test_lines_that_are_wrong, test_sizes_at_their_edges,
          test_a_run_goes_on_with_the_key_that_replaces, test_a_mesh_is_looked_at_at_once,
          test_what_takes_something_away, test_lines_are_added_and_replaced,
          test_lines_are_taken_out, test_wishes_that_are_refused, test_rotations_do_not_end)
