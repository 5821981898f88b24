// Tables for people, as wide as the terminal: columns that do not fit are left out, those of the
// least worth first.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { TEXT_COLUMNS_MAX = 16 };

struct text_column {
    const char *head;
    int width;          // negative: its texts begin at the left
    unsigned int worth; // 0: it is never left out
};

struct text_table {
    FILE *out;
    const struct text_column *columns; // borrowed
    size_t count;                      // at most TEXT_COLUMNS_MAX
    bool is_hidden[TEXT_COLUMNS_MAX];
};

// Columns of the terminal that `out` is; 0: it is none, and has room for everything.
int text_table_room(FILE *out);

// Chooses the columns for `room` and prints the heading.
void text_table_begin(struct text_table *table, FILE *out, const struct text_column *columns,
                      size_t count, int room);

// Prints a row: a cell for each column, those left out included.
void text_table_row(const struct text_table *table, const char *const *cells);
