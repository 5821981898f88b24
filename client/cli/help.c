#include "client/cli/help.h"

#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/options.h"

enum { HELP_WIDTH = 80, TERM_WIDTH = 20 };

// Writes "  TERM    meaning", the meaning wrapped beside its term.
static void write_entry(FILE *out, const char *term, const char *meaning)
{
    int used = fprintf(out, "  %-*s", TERM_WIDTH, term);
    if (used > TERM_WIDTH + 2) {
        (void)fprintf(out, "\n%*s", TERM_WIDTH + 2, "");
    }
    size_t place = TERM_WIDTH + 2;
    for (const char *word = meaning; *word != '\0';) {
        size_t size = strcspn(word, " ");
        if (place + 1 + size > HELP_WIDTH) {
            (void)fprintf(out, "\n%*s", TERM_WIDTH + 2, "");
            place = TERM_WIDTH + 2;
        }
        (void)fprintf(out, " %.*s", (int)size, word);
        place += 1 + size;
        word += size;
        word += strspn(word, " ");
    }
    (void)fputc('\n', out);
}

static void write_option(FILE *out, const struct option_info *info)
{
    char letter[8] = "";
    if (info->letter)
        (void)snprintf(letter, sizeof letter, "-%c, ", info->letter);
    char term[64];
    (void)snprintf(term, sizeof term, "%s--%s%s%s", letter, info->name, info->argument ? " " : "",
                   info->argument ? info->argument : "");
    write_entry(out, term, info->meaning);
}

void help_write(FILE *out)
{
    (void)fputs("Usage: inferstat [--collector ADDR | --db FILE] COMMAND [OPTION]...\n"
                "What GPU inference really does: loads, requests, losses, in numbers.\n"
                "\n"
                "Commands:\n",
                out);
    unsigned count;
    const struct cli_command *commands = cli_commands(&count);
    for (unsigned i = 0; i < count; i++)
        write_entry(out, commands[i].name, commands[i].summary);

    (void)fputs("\nOptions (each command takes those its own help lists):\n", out);
    for (int i = 0; i < OPTION_COUNT; i++)
        write_option(out, option_info((enum cli_option)i));

    (void)fputs("\n"
                "Exit status: 0 done, 1 a check said no, 2 wrong usage, 3 no data, 4 the\n"
                "collector or file cannot be reached or used, 5 a comparison lacks evidence.\n"
                "Environment: INFERSTAT_COLLECTOR (address), INFERSTAT_KEY, INFERSTAT_SERVER_KEY,\n"
                "NO_COLOR, TZ (zone of times shown).\n"
                "More: inferstat COMMAND --help, man inferstat.\n",
                out);
}

void help_write_command(FILE *out, const struct cli_command *command)
{
    (void)fprintf(out, "Usage: inferstat %s%s%s [OPTION]...\n%s.\n", command->name,
                  command->arguments[0] ? " " : "", command->arguments, command->summary);
    if (command->details)
        (void)fprintf(out, "\n%s\n", command->details);
    (void)fputs("\nOptions:\n", out);
    uint64_t options = cli_command_options(command);
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (options >> i & 1)
            write_option(out, option_info((enum cli_option)i));
    }
}
