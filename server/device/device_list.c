#include "server/device/device_list.h"

#include <stdio.h>
#include <string.h>

enum { NUMBER_DIGITS_MAX = 5 }; // as in device_open

static enum status add_device(struct device_list *list, const char *spec, size_t head,
                              const char *number, size_t digits, struct error *err)
{
    char one[DEVICE_SPEC_SIZE];
    if (list->count == DEVICE_LIST_MAX)
        return error_set(err, STATUS_INVALID, "device '%.40s': more than %d devices", spec,
                         DEVICE_LIST_MAX);
    while (digits > 1 && *number == '0') { // 00 is 0
        number++;
        digits--;
    }
    (void)snprintf(one, sizeof one, "%.*s%.*s", (int)head, spec, (int)digits, number);
    for (unsigned int i = 0; i < list->count; i++)
        if (strcmp(list->specs[i], one) == 0)
            return error_set(err, STATUS_INVALID, "device '%.40s': %s is named twice", spec, one);
    memcpy(list->specs[list->count++], one, sizeof one);
    return STATUS_OK;
}

enum status device_list_parse(struct device_list *out, const char *spec, struct error *err)
{
    *out = (struct device_list){.count = 0};
    const char *text = spec ? spec : "auto";
    if (!strchr(text, ',')) {
        out->count = 1;
        (void)snprintf(out->specs[0], sizeof out->specs[0], "%s", text);
        return STATUS_OK;
    }
    size_t head = strcspn(text, ":,") + 1; // with its colon
    if (head == 1 || head > DEVICE_SPEC_SIZE / 2 || text[head - 1] != ':')
        return error_set(err, STATUS_INVALID,
                         "device '%.40s': no list of devices (use cuda:N,N,... or cpu:N,N,...)",
                         text);
    const char *at = text + head;
    for (;;) {
        size_t digits = strspn(at, "0123456789");
        if (digits == 0 || digits > NUMBER_DIGITS_MAX || (at[digits] != ',' && at[digits] != '\0'))
            return error_set(err, STATUS_INVALID,
                             "device '%.40s': behind the colon stand numbers with commas between "
                             "them",
                             text);
        enum status status = add_device(out, text, head, at, digits, err);
        if (status != STATUS_OK || at[digits] == '\0')
            return status;
        at += digits + 1;
    }
}
