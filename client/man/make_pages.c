// make_pages schema|metrics: prints a manual page of section 7.
#include <stdio.h>
#include <string.h>

#include "client/man/pages.h"

static const struct {
    const char *name;
    enum status (*print)(struct error *err);
} pages[] = {{"schema", page_schema}, {"metrics", page_metrics}};

int main(int argc, char **argv)
{
    struct error err = {0};
    for (size_t i = 0; argc == 2 && i < sizeof pages / sizeof *pages; i++) {
        if (strcmp(argv[1], pages[i].name) != 0)
            continue;
        if (pages[i].print(&err) != STATUS_OK || fflush(stdout) != 0 || ferror(stdout)) {
            fprintf(stderr, "make_pages: %s\n", err.text[0] ? err.text : "cannot write");
            return 1;
        }
        return 0;
    }
    fprintf(stderr, "usage: make_pages schema|metrics\n");
    return 2;
}
