// Table-driven option parser: one C array of options defines what a program accepts on its command
// line and in its configuration file, and what its help and shell completion show.  An option
// stores its value in a member of a structure, the target.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/core/base/error.h"

// A list goes on where its option is given again; the last of other values counts.
enum option_type {
    OPTION_GIVEN,   // no member: only option_table.given is set
    OPTION_FLAG,    // bool, set to true; in a configuration file yes or no
    OPTION_TEXT,    // const char *, borrowed from the command line or from the caller of option_set
    OPTION_PATH,    // char[PATH_MAX], copied; an empty path is refused
    OPTION_INTEGER, // int64_t, minimum..maximum
    OPTION_UINT32,  // uint32_t, minimum..maximum
    OPTION_REAL,    // double, minimum..maximum
    OPTION_PERIOD,  // int64_t, a duration above zero in nanoseconds
    OPTION_CHOICE,  // int or an enum, the index of one of `choices`
    OPTION_SET,     // uint32_t, bit i: choice i; a comma-separated list
    OPTION_NUMBERS, // struct option_numbers; a comma-separated list
    OPTION_CUSTOM,  // any type, parsed by `parse`
};

enum { OPTION_NUMBERS_MAX = 32 };

// Numbers that differ, each minimum..maximum.
struct option_numbers {
    size_t values[OPTION_NUMBERS_MAX];
    size_t count; // 0: not given
};

// Callback: returns the i-th word that an option accepts; NULL after the last one.
typedef const char *option_choice(unsigned i);

// Callback: parses `value` into `member`.  `what` is the option's name with dashes, for messages.
typedef enum status option_parse(void *member, const char *value, const char *what,
                                 struct error *err);

struct option {
    const char *name;     // without dashes
    const char *argument; // name of its value in help; NULL: the option has no value
    const char *help;     // NULL: not listed in help
    enum option_type type;
    size_t offset;           // of the member in option_table.target
    double minimum, maximum; // valid range, inclusive, of a number
    option_choice *choices;  // OPTION_CHOICE, OPTION_SET: NULL: what `argument` has, "A|B|C"
    option_parse *parse;     // OPTION_CUSTOM
    char letter;             // short form, "-n"; 0: none
    bool not_in_file;        // not accepted in a configuration file; its reader enforces this
};

// Initializers of the fields of struct option from `type` to `parse`.
// `member` is a member of OPTION_TARGET; the file with the table must define OPTION_TARGET as the
// target's type.  Example: {"tokens", "N", "at most N tokens", INTEGER_AT(tokens, 1, 100)}.
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
#define NUMBERS_AT(member, least, most)                                                            \
    OPTION_AT(NUMBERS, member), .minimum = least, .maximum = most
#define CUSTOM_AT(member, function) OPTION_AT(CUSTOM, member), .parse = function

struct option_table {
    const struct option *options;
    size_t count;
    void *target; // the structure that receives the values
    bool *given;  // output, by index: the option was on the command line; NULL: not recorded
    const bool *suggested; // by index: what messages suggest; NULL: all
};

// Iterator over a command line.  Set all members but `words_only`, which is false.
struct option_reader {
    const char *program;               // for "see PROGRAM --help"
    char *const *words;                // argv
    int count;                         // argc
    const struct option_table *tables; // searched in order
    size_t table_count;
    int at;          // index of the next word; at first 1, to skip the name of the program
    bool words_only; // "--" was read: the rest are arguments
};

// Parses the next option or argument; call it while `at` < `count`.  For an option ("--name value",
// "--name=value", "-n5", "-n 5", flags as "-yh") stores the value in the table's target and sets
// `*word` to NULL; also sets it to NULL for "--".  For an argument, also "-", sets `*word` to it.
// Returns STATUS_INVALID if the option is unknown (`err` suggests the nearest name), or if its
// value is missing, unexpected or invalid.
MUST_CHECK enum status option_reader_next(struct option_reader *reader, const char **word,
                                          struct error *err);

// Finds an option by name; NULL: none.
const struct option *option_find(const struct option_table *table, const char *name);

// Parses `value` into the option's member of `target`.  NULL: the option was given without a value.
MUST_CHECK enum status option_set(const struct option *option, void *target, const char *value,
                                  struct error *err);

// Reports that option `name` is unknown: returns STATUS_INVALID, and `err` suggests the nearest
// name in `tables`.  `prefix`, such as "--", precedes both names in the message.
enum status option_unknown(const struct option_table *tables, size_t table_count,
                           const char *prefix, const char *name, const char *program,
                           struct error *err);

// Writes "  TERM    meaning", the meaning wrapped in the second column.
void option_write_entry(FILE *out, const char *term, const char *meaning);

// Writes the help of one option, or of all in a table.
void option_write_help(FILE *out, const struct option *option);
void option_table_write_help(FILE *out, const struct option_table *table);
