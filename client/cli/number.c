#include "client/cli/number.h"

#include <stdio.h>
#include <stdlib.h>

enum { DIGITS_ENOUGH = 17 }; // for any double, by IEEE 754

char *number_text(char *text, double value)
{
    for (int digits = 15; digits <= DIGITS_ENOUGH; digits++) {
        (void)snprintf(text, NUMBER_TEXT_SIZE, "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (!(back < value) && !(back > value))
            break;
    }
    return text;
}
