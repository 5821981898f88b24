#include "server/device/device.h"

#include "tests/support/test.h"

TEST_CASE(lists)
{
    static const struct {
        const char *spec;
        unsigned int count; // 0: refused
        const char *first, *last, *says;
    } cases[] = {
        {NULL, 1, "auto", "auto", NULL},
        {"auto", 1, "auto", "auto", NULL},
        {"cuda", 1, "cuda", "cuda", NULL},
        {"cuda:3", 1, "cuda:3", "cuda:3", NULL},
        {"gpu", 0, NULL, NULL, "device 'gpu': no such device (use auto, "},
        {"cuda:", 0, NULL, NULL, "no such device"},
        {"gpu:0,1", 0, NULL, NULL, "device 'gpu:0,1': no such device"},
        {"cuda:0,1", 2, "cuda:0", "cuda:1", NULL},
        {"cuda:7,00,12345", 3, "cuda:7", "cuda:12345", NULL},
        {"cpu:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15", 16, "cpu:0", "cpu:15", NULL},
        {"cpu:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", 0, NULL, NULL, "more than 16 devices"},
        {"cuda:0,0", 0, NULL, NULL, "cuda:0 is named twice"},
        {"cuda:1,01", 0, NULL, NULL, "cuda:1 is named twice"},
        {"cpu,cpu", 0, NULL, NULL, "no list of devices (use cuda:N,N,... or cpu:N,N,...)"},
        {"cpu,cuda:0", 0, NULL, NULL, "no list of devices"},
        {",", 0, NULL, NULL, "no list of devices"},
        {":0,1", 0, NULL, NULL, "no list of devices"},
        {"a name that is far too long for a device:0,1", 0, NULL, NULL, "no list of devices"},
        {"cuda:0,", 0, NULL, NULL, "numbers with commas"},
        {"cuda:,0", 0, NULL, NULL, "numbers with commas"},
        {"cuda:0,,1", 0, NULL, NULL, "numbers with commas"},
        {"cuda:0,x", 0, NULL, NULL, "numbers with commas"},
        {"cuda:0, 1", 0, NULL, NULL, "numbers with commas"},
        {"cuda:0,cuda:1", 0, NULL, NULL, "numbers with commas"},
        {"cuda:0,-1", 0, NULL, NULL, "numbers with commas"},
        {"cuda:0,123456", 0, NULL, NULL, "numbers with commas"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct device_list list;
        struct error err = {0};
        const enum status status = device_list_parse(&list, cases[i].spec, &err);
        assert_int_equal(status, cases[i].count ? STATUS_OK : STATUS_INVALID);
        if (cases[i].says)
            assert_non_null(strstr(err.text, cases[i].says));
        if (status != STATUS_OK)
            continue;
        assert_int_equal(list.count, cases[i].count);
        assert_string_equal(list.specs[0], cases[i].first);
        assert_string_equal(list.specs[list.count - 1], cases[i].last);
    }
}

TEST_MAIN(lists)
