// Command line options, defined by tables that parsing, configuration files, help and
// completion read.
#ifndef INFERSTAT_SYS_OPTION_TABLE_H
#define INFERSTAT_SYS_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/core/base/error.h"

enum option_type {
    OPTION_GIVEN,   // nothing: `given` tells
    OPTION_FLAG,    // bool, set to true; in a configuration file yes or no
    OPTION_TEXT,    // const char *, borrowed from the command line
    OPTION_PATH,    // char[PATH_MAX], copied; an empty path is refused
    OPTION_INTEGER, // int64_t, minimum..maximum
    OPTION_UINT32,  // uint32_t, minimum..maximum
    OPTION_REAL,    // double, minimum..maximum
    OPTION_PERIOD,  // int64_t, a duration above zero in nanoseconds
    OPTION_CHOICE,  // int or an enum, the index of one of `choices`
    OPTION_SET,     // uint32_t, bit i: choice i; given as a list with commas
    OPTION_CUSTOM,  // anything, set by `parse`
};

// The i-th word that an option accepts; NULL after the last one.
typedef const char *option_choice(unsigned i);

// Sets `member` from `value`.  `what` is the option's name with dashes, for messages.
typedef enum status option_parse(void *member, const char *value, const char *what,
                                 struct error *err);

struct option {
    const char *name;     // without dashes
    const char *argument; // its value's name in help; NULL: takes none
    const char *help;     // NULL: not listed
    enum option_type type;
    size_t offset; // of the member in the table's target
    double minimum, maximum;
    option_choice *choices; // also what completion offers; NULL: none
    option_parse *parse;    // OPTION_CUSTOM
    char letter;            // 0: none
    bool not_in_file;       // on the command line only
};

// The end of a row, for a member of the type OPTION_TARGET, which the file that has the table
// defines: {"tokens", "N", "at most N tokens", INTEGER_AT(tokens, 1, 100)}.
#define OPTION_AT(kind, member) .type = OPTION_##kind, .offset = offsetof(OPTION_TARGET, member)
#define OPTION_IS_GIVEN         .type = OPTION_GIVEN
#define FLAG_AT(member)         OPTION_AT(FLAG, member)
#define TEXT_AT(member)         OPTION_AT(TEXT, member)
#define PATH_AT(member)         OPTION_AT(PATH, member)
#define INTEGER_AT(member, least, most)                                                            \
    OPTION_AT(INTEGER, member), .minimum = least, .maximum = most
#define UINT32_AT(member, least, most) OPTION_AT(UINT32, member), .minimum = least, .maximum = most
#define REAL_AT(member, least, most)   OPTION_AT(REAL, member), .minimum = least, .maximum = most
#define PERIOD_AT(member)              OPTION_AT(PERIOD, member)
#define CHOICE_AT(member, words)       OPTION_AT(CHOICE, member), .choices = words
#define SET_AT(member, words)          OPTION_AT(SET, member), .choices = words
#define CUSTOM_AT(member, function)    OPTION_AT(CUSTOM, member), .parse = function

struct option_table {
    const struct option *options;
    size_t count;
    void *target; // the structure that `offset` counts from
    bool *given;  // given[i]: options[i] was on the command line; NULL: not wanted
};

// A command line being read.  Start from zero with the first five set.
struct option_reader {
    const char *program; // for "see PROGRAM --help"
    char *const *words;
    int count;
    const struct option_table *tables; // the first that knows a name decides
    size_t table_count;
    int at;          // the next word
    bool words_only; // "--" was read: no more options
};

// Reads what words[at] begins (`at` < `count`): an option with its value ("--name value",
// "--name=value", "-n5", "-n 5", flags as "-yh") or "--", with *word NULL; or a word, which is
// *word.  "-" alone is a word.  STATUS_INVALID on an unknown option (with the nearest one), a
// missing or unexpected value, or one that the option does not accept.
MUST_CHECK enum status option_reader_next(struct option_reader *reader, const char **word,
                                          struct error *err);

// The option of that name; NULL: none.
const struct option *option_find(const struct option_table *table, const char *name);

// Sets the member of `target`.  A flag's value may be NULL.
MUST_CHECK enum status option_set(const struct option *option, void *target, const char *value,
                                  struct error *err);

// STATUS_INVALID for a name that no table has, `prefix` before it.
enum status option_unknown(const struct option_table *tables, size_t table_count,
                           const char *prefix, const char *name, const char *program,
                           struct error *err);

// Writes "  TERM    meaning" with the meaning wrapped in its own column.
void option_write_entry(FILE *out, const char *term, const char *meaning);

// Writes the help of one option, or of all in a table.
void option_write_help(FILE *out, const struct option *option);
void option_table_write_help(FILE *out, const struct option_table *table);

#endif
