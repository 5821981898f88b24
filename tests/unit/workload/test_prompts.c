// Prompts from a text, a file, a pipe.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "server/workload/llm/prompts.h"
#include "tests/support/test.h"
#include "tests/unit/workload/model_files.h"

// Takes prompts until there are none, at most `limit`, joined by '|'.
static const char *take(struct prompts *prompts, size_t limit)
{
    static char all[4096];
    size_t n = 0;
    all[0] = '\0';
    for (size_t i = 0; i < limit; i++) {
        const char *text;
        size_t size;
        enum status status = prompts_next(prompts, &text, &size, NULL);
        if (status == STATUS_NO_DATA)
            break;
        assert_int_equal(status, STATUS_OK);
        memcpy(all + n, text, size);
        n += size;
        all[n++] = '|';
        all[n] = '\0';
    }
    return all;
}

TEST_CASE(a_text_again_and_again)
{
    struct prompts *prompts = NULL;
    assert_int_equal(prompts_from_text(&prompts, "hello", NULL), STATUS_OK);
    assert_string_equal(take(prompts, 3), "hello|hello|hello|");
    prompts_free(prompts);
    assert_int_equal(prompts_from_text(&prompts, "", NULL), STATUS_OK);
    assert_string_equal(take(prompts, 1), "|");
    prompts_free(prompts);
    prompts_free(NULL);
}

TEST_CASE(lines_of_a_file)
{
    static const struct {
        const char *contents;
        bool repeat;
        const char *prompts;
    } cases[] = {
        {"one\ntwo\n", false, "one|two|"},
        {"one\ntwo", false, "one|two|"},
        {"\n\none\r\n\ntwo \n\n", false, "one|two |"},
        {"one\ntwo", true, "one|two|one|two|one|"},
        {"", false, ""},
        {"", true, ""},
        {"\n\n\n", true, ""}, // nothing to repeat: it ends
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct prompts *prompts = NULL;
        const char *path =
            model_files_write("prompts", cases[i].contents, strlen(cases[i].contents));
        assert_int_equal(prompts_from_file(&prompts, path, cases[i].repeat, -1, NULL), STATUS_OK);
        assert_string_equal(take(prompts, 5), cases[i].prompts);
        prompts_free(prompts);
    }
    struct prompts *prompts = NULL;
    struct error err = {0};
    assert_int_equal(prompts_from_file(&prompts, model_files_path("none"), false, -1, &err),
                     STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "none"));
    assert_int_equal(prompts_from_file(&prompts, model_files_path(""), false, -1, &err), STATUS_OK);
    const char *text;
    size_t size;
    assert_int_equal(prompts_next(prompts, &text, &size, &err), STATUS_IO); // a folder
    prompts_free(prompts);
}

// Lines longer than one read, up to the limit and beyond.
TEST_CASE(long_lines)
{
    size_t size = (16 << 20) + 300000;
    char *contents = malloc(size);
    memset(contents, 'x', size);
    contents[200000] = '\n';
    const char *path = model_files_write("long", contents, 300000);
    struct prompts *prompts = NULL;
    const char *text;
    size_t length;
    assert_int_equal(prompts_from_file(&prompts, path, false, -1, NULL), STATUS_OK);
    assert_int_equal(prompts_next(prompts, &text, &length, NULL), STATUS_OK);
    assert_int_equal(length, 200000);
    assert_int_equal(prompts_next(prompts, &text, &length, NULL), STATUS_OK);
    assert_int_equal(length, 99999);
    prompts_free(prompts);

    contents[200000] = 'x';
    struct error err = {0};
    assert_int_equal(
        prompts_from_file(&prompts, model_files_write("long", contents, size), false, -1, NULL),
        STATUS_OK);
    assert_int_equal(prompts_next(prompts, &text, &length, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "long:1: a line of more than"));
    assert_int_equal(prompts_next(prompts, &text, &length, &err), STATUS_NO_DATA);
    assert_non_null(strstr(err.text, "no more prompts"));
    prompts_free(prompts);

    // The line behind it is the next; so is the first one again.
    contents[0] = 'a';
    contents[1] = contents[size - 3] = contents[size - 1] = '\n';
    contents[size - 2] = 'b';
    path = model_files_write("long", contents, size);
    assert_int_equal(prompts_from_file(&prompts, path, true, -1, NULL), STATUS_OK);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(prompts_next(prompts, &text, &length, NULL), STATUS_OK);
        assert_memory_equal(text, "a", length);
        assert_int_equal(prompts_next(prompts, &text, &length, &err), STATUS_INVALID);
        assert_non_null(strstr(err.text, "long:2: "));
        assert_int_equal(prompts_next(prompts, &text, &length, NULL), STATUS_OK);
        assert_memory_equal(text, "b", length);
    }
    prompts_free(prompts);
    free(contents);
}

// A pipe nobody writes to yet holds up nothing: neither opening it nor a stop.
TEST_CASE(a_pipe_without_a_writer)
{
    const char *path = model_files_path("fifo");
    int stop[2];
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pipe(stop), 0);
    struct prompts *prompts = NULL;
    const char *text;
    size_t size;
    assert_int_equal(prompts_from_file(&prompts, path, false, stop[0], NULL), STATUS_OK);
    int writer = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(writer >= 0);
    assert_int_equal(write(writer, "late\n", 5), 5);
    assert_int_equal(prompts_next(prompts, &text, &size, NULL), STATUS_OK);
    assert_memory_equal(text, "late", size);
    (void)close(writer);
    prompts_free(prompts);

    assert_int_equal(prompts_from_file(&prompts, path, false, stop[0], NULL), STATUS_OK);
    assert_int_equal(write(stop[1], "!", 1), 1);
    assert_int_equal(prompts_next(prompts, &text, &size, NULL), STATUS_CANCELLED);
    prompts_free(prompts);
    (void)close(stop[0]);
    (void)close(stop[1]);
}

// Each line was there when its end was: many reads, more than are told apart.
TEST_CASE(lines_know_when_they_came)
{
    enum { LINES = 100, APART = 60 };
    const char *path = model_files_path("times");
    assert_int_equal(mkfifo(path, 0600), 0);
    struct prompts *prompts = NULL;
    const char *text;
    size_t size;
    assert_int_equal(prompts_from_file(&prompts, path, false, -1, NULL), STATUS_OK);
    int writer = open(path, O_WRONLY | O_CLOEXEC);
    uint64_t written[LINES + 1];
    for (size_t i = 0; i < LINES; i++) {
        written[i] = clock_monotonic_ns();
        assert_int_equal(write(writer, "line\n", 5), 5);
        prompts_poll(prompts);
    }
    written[LINES] = clock_monotonic_ns();
    for (size_t i = 0; i < LINES; i++) {
        assert_int_equal(prompts_next(prompts, &text, &size, NULL), STATUS_OK);
        assert_true(prompts_ready_ns(prompts) >= written[i]);
        assert_true(prompts_ready_ns(prompts) <= written[i < APART ? i + 1 : LINES]);
    }
    (void)close(writer);
    prompts_free(prompts);

    path = model_files_write("prompts", "one\n", 4);
    assert_int_equal(prompts_from_file(&prompts, path, false, -1, NULL), STATUS_OK);
    prompts_poll(prompts);
    assert_int_equal(prompts_next(prompts, &text, &size, NULL), STATUS_OK);
    assert_int_equal(prompts_ready_ns(prompts), 0);
    prompts_free(prompts);
}

// Standard input gives lines as they come, and waiting for one ends with a stop.
TEST_CASE(standard_input)
{
    int in[2];
    int stop[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(stop), 0);
    int saved = dup(STDIN_FILENO);
    assert_int_equal(dup2(in[0], STDIN_FILENO), STDIN_FILENO);
    struct prompts *prompts = NULL;
    const char *text;
    size_t size;
    assert_int_equal(prompts_from_file(&prompts, "-", true, stop[0], NULL), STATUS_OK);
    assert_int_equal(write(in[1], "first\nsec", 9), 9);
    assert_int_equal(prompts_next(prompts, &text, &size, NULL), STATUS_OK);
    assert_memory_equal(text, "first", size);
    assert_int_equal(write(in[1], "ond\n", 4), 4);
    assert_int_equal(prompts_next(prompts, &text, &size, NULL), STATUS_OK);
    assert_int_equal(size, 6);
    assert_memory_equal(text, "second", size);
    assert_int_equal(write(stop[1], "!", 1), 1);
    assert_int_equal(prompts_next(prompts, &text, &size, NULL), STATUS_CANCELLED);
    prompts_free(prompts);

    assert_int_equal(read(stop[0], &(char){0}, 1), 1);
    assert_int_equal(prompts_from_file(&prompts, "-", true, stop[0], NULL), STATUS_OK);
    assert_int_equal(write(in[1], "last", 4), 4);
    assert_int_equal(close(in[1]), 0);
    assert_string_equal(take(prompts, 5), "last|"); // a pipe cannot be read again
    prompts_free(prompts);
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    (void)close(saved);
    (void)close(in[0]);
    (void)close(stop[0]);
    (void)close(stop[1]);
}

TEST_MAIN_ONCE(model_files_setup, model_files_teardown, a_text_again_and_again, lines_of_a_file,
               long_lines, a_pipe_without_a_writer, lines_know_when_they_came, standard_input)
