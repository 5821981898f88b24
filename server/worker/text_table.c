#include "server/worker/text_table.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

int text_table_room(FILE *out)
{
    struct winsize size = {0};
    const int file = fileno(out);
    return isatty(file) && ioctl(file, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static int width_of(const struct text_table *table)
{
    int width = -1; // before the first there is no space
    for (size_t i = 0; i < table->count; i++)
        width += table->is_hidden[i] ? 0 : abs(table->columns[i].width) + 1;
    return width;
}

// The column to be left out next; NULL: none may be.
static bool *find_least(struct text_table *table)
{
    bool *least = NULL;
    unsigned int worth = 0;
    for (size_t i = 0; i < table->count; i++) {
        const unsigned int own = table->columns[i].worth;
        if (table->is_hidden[i] || own == 0 || (least && own >= worth))
            continue;
        least = &table->is_hidden[i];
        worth = own;
    }
    return least;
}

void text_table_begin(struct text_table *table, FILE *out, const struct text_column *columns,
                      size_t count, int room)
{
    const char *heads[TEXT_COLUMNS_MAX] = {NULL};
    assert(count <= TEXT_COLUMNS_MAX);
    *table = (struct text_table){.out = out, .columns = columns, .count = count};
    for (bool *least = NULL; room > 0 && width_of(table) > room; *least = true)
        if (!(least = find_least(table)))
            break;
    for (size_t i = 0; i < count; i++)
        heads[i] = columns[i].head;
    text_table_row(table, heads);
}

void text_table_row(const struct text_table *table, const char *const *cells)
{
    const char *space = "";
    for (size_t i = 0; i < table->count; i++) {
        if (table->is_hidden[i])
            continue;
        (void)fprintf(table->out, "%s%*s", space, table->columns[i].width, cells[i]);
        space = " ";
    }
    (void)fputc('\n', table->out);
    (void)fflush(table->out); // the next row may take long
}
