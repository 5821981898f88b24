// A server that sends more than it should: the client closes the connection.
#include "common/sys/clock.h"
#include "common/wire/listener/listener.h"
#include "common/wire/socket.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static char folder[FOLDER_PATH_SIZE];
static struct wire_context *context;
static struct listener *listener;
static struct port *server;
static struct wire_socket *client;
static struct wire_route route;

// Connects as a client of the service and says hello.
static void open_both(enum address_service service)
{
    char endpoint[ADDRESS_TEXT_SIZE];
    const struct wire_listen listen = {.service = service};
    struct wire_frame frame;
    (void)snprintf(endpoint, sizeof endpoint, "ipc://%s/s", folder);
    assert_int_equal(wire_context_new(&context, NULL), STATUS_OK);
    assert_int_equal(listener_new(&listener, NULL), STATUS_OK);
    assert_int_equal(port_open(&server, listener, endpoint, &listen, NULL), STATUS_OK);
    assert_int_equal(wire_connect(&client, context, endpoint, service, NULL, NULL, NULL),
                     STATUS_OK);
    const uint64_t until_ns = clock_monotonic_ns() + UINT64_C(10000000000);
    while (wire_send(client, "hello", 5) != STATUS_OK)
        assert_true(clock_monotonic_ns() < until_ns);
    uint32_t ready;
    port_wait(&server, 1, -1, UINT64_C(10000000000), &ready);
    assert_int_equal(port_receive(server, &frame), STATUS_OK);
    route = frame.route;
    port_release(&frame);
}

static void close_both(void)
{
    wire_close(client);
    port_close(server);
    wire_context_free(context);
    listener_free(listener);
}

// Sends messages and receives them, until there were so many or the client closed the connection.
static unsigned exchange(unsigned count, size_t size)
{
    static unsigned char bytes[1 << 20];
    for (unsigned i = 0; i < count; i++) {
        struct wire_bytes frame;
        uint32_t ready;
        enum status status = STATUS_FULL;
        for (int tries = 0; status == STATUS_FULL && tries < 5000; tries++) {
            status = port_send(server, &route, bytes, size);
            if (status == STATUS_FULL) // what was sent before is still on its way
                port_wait(NULL, 0, -1, 1000000, &ready);
        }
        if (status != STATUS_OK)
            return i;
        wire_wait(&client, 1, -1, INT64_C(5000000000), &ready);
        if (wire_receive(client, &frame) != STATUS_OK)
            return i;
    }
    return count;
}

static void expect_closed(void)
{
    assert_int_equal(wire_handshake(client), WIRE_HANDSHAKE_CLOSED);
    assert_non_null(strstr(wire_trouble(client), "user "));
    assert_int_equal(wire_send(client, "hello", 5), STATUS_FULL);
    struct wire_bytes frame;
    assert_int_equal(wire_receive(client, &frame), STATUS_NO_DATA);
    wire_count_garbage(client); // of no consequence any more
}

TEST_FIXTURE(set_up)
{
    folder_make(folder);
    return 0;
}

TEST_FIXTURE(tear_down)
{
    folder_remove(folder);
    return 0;
}

TEST_CASE(test_too_many_bytes)
{
    open_both(ADDRESS_INGEST);
    assert_true(exchange(1000, 1 << 20) < 1000);
    expect_closed();
    close_both();
    open_both(ADDRESS_QUERY); // may have as many
    assert_int_equal(exchange(20, 1 << 20), 20);
    assert_int_equal(wire_handshake(client), WIRE_HANDSHAKE_DONE);
    assert_string_equal(wire_trouble(client), "");
    close_both();
}

TEST_CASE(test_garbage)
{
    open_both(ADDRESS_QUERY);
    for (int i = 0; i < 63; i++)
        wire_count_garbage(client);
    assert_int_equal(exchange(5, 10), 5);
    wire_count_garbage(client);
    expect_closed();
    close_both();
}

// Messages wait without a limit while the client does not receive.
TEST_CASE(test_too_many_messages)
{
    open_both(ADDRESS_INGEST);
    unsigned sent = 0;
    const uint64_t until_ns = clock_monotonic_ns() + UINT64_C(30000000000);
    uint32_t ready;
    while (sent < 9000 && clock_monotonic_ns() < until_ns)
        if (port_send(server, &route, "x", 1) == STATUS_OK)
            sent++;
        else
            port_wait(NULL, 0, -1, 1000000, &ready);
    assert_int_equal(sent, 9000);
    struct wire_bytes frame;
    unsigned received = 0;
    for (; received < 9000; received++) {
        wire_wait(&client, 1, -1, INT64_C(5000000000), &ready);
        if (wire_receive(client, &frame) != STATUS_OK)
            break;
    }
    assert_int_equal(received, 8192);
    expect_closed();
    close_both();
}

TEST_MAIN_EACH(set_up, tear_down, test_too_many_bytes, test_garbage, test_too_many_messages)
