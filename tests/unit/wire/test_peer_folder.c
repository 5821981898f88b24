// Folders of ipc addresses, and who may listen in them.
#include "common/wire/peer_folder.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "common/wire/listener/listener.h"
#include "common/wire/socket.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

enum { STRANGER = 65534, FRIEND = 65533 };

static char folder[FOLDER_PATH_SIZE], place[FOLDER_PATH_SIZE];

TEST_FIXTURE(set_up)
{
    folder_make(folder);
    (void)folder_path(place, folder, "c");
    assert_int_equal(mkdir(place, 0750), 0);
    return 0;
}

TEST_FIXTURE(tear_down)
{
    folder_remove(folder);
    return 0;
}

static enum status check(const char *path, const char *user, const char *socket, struct error *err)
{
    struct peer_trust trust;
    int fd = -1;
    *err = (struct error){0};
    assert_int_equal(peer_trust_init(&trust, user, err), STATUS_OK);
    const enum status status = peer_open_folder(&fd, &trust, path, socket, err);
    assert_int_equal(fd >= 0, status == STATUS_OK);
    assert_int_equal(err->text[0] == '\0', status == STATUS_OK);
    if (fd >= 0)
        assert_int_equal(close(fd), 0);
    return status;
}

TEST_CASE(test_modes)
{
    static const struct {
        mode_t mode;
        const char *who; // who else may write; NULL: nobody
    } cases[] = {
        {0700, NULL},       {0750, NULL},        {0755, NULL},       {0770, "its group"},
        {0777, "any user"}, {01777, "any user"}, {0702, "any user"}, {0720, "its group"},
    };
    struct error err;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(chmod(place, cases[i].mode), 0);
        assert_int_equal(check(place, NULL, "ingest", &err),
                         cases[i].who ? STATUS_DENIED : STATUS_OK);
        if (cases[i].who)
            assert_non_null(strstr(err.text, cases[i].who));
    }
    assert_int_equal(check("/nowhere/at/all", NULL, NULL, &err), STATUS_NOT_FOUND);
    assert_int_equal(check("/dev/null", NULL, NULL, &err), STATUS_NOT_FOUND);
}

// A link counts as what it leads to.
TEST_CASE(test_a_link)
{
    char link[FOLDER_PATH_SIZE];
    struct error err;
    assert_int_equal(symlink(place, folder_path(link, folder, "link")), 0);
    assert_int_equal(check(link, NULL, NULL, &err), STATUS_OK);
    assert_int_equal(chmod(place, 0777), 0);
    assert_int_equal(check(link, NULL, NULL, &err), STATUS_DENIED);
}

TEST_CASE(test_owners)
{
    char number[16], socket[FOLDER_PATH_SIZE];
    struct error err;
    if (geteuid() != 0)
        skip();
    (void)snprintf(number, sizeof number, "%d", STRANGER);

    // The parent is root's, which alone may write to it: root has given the folder away.
    assert_int_equal(chown(place, STRANGER, STRANGER), 0);
    assert_int_equal(check(place, NULL, NULL, &err), STATUS_OK);
    assert_int_equal(chmod(folder, 01777), 0);
    assert_int_equal(check(place, NULL, NULL, &err), STATUS_DENIED);
    assert_non_null(strstr(err.text, number));
    assert_int_equal(check(place, number, NULL, &err), STATUS_OK);
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(chown(folder, FRIEND, FRIEND), 0);
    assert_int_equal(check(place, NULL, NULL, &err), STATUS_DENIED);
    assert_int_equal(check(place, "0", NULL, &err), STATUS_DENIED);

    // A socket in a trusted folder, and something that is none.
    assert_int_equal(chown(place, 0, 0), 0);
    assert_int_equal(mknod(folder_path(socket, place, "ingest"), S_IFSOCK | 0660, 0), 0);
    assert_int_equal(check(place, NULL, "ingest", &err), STATUS_OK);
    assert_int_equal(lchown(socket, STRANGER, STRANGER), 0);
    assert_int_equal(check(place, NULL, "ingest", &err), STATUS_DENIED);
    assert_int_equal(check(place, NULL, "query", &err), STATUS_OK);
    assert_int_equal(check(place, number, "ingest", &err), STATUS_OK);
    assert_int_equal(unlink(socket), 0);
    assert_int_equal(mknod(socket, S_IFREG | 0600, 0), 0);
    assert_int_equal(check(place, NULL, "ingest", &err), STATUS_DENIED);
}

// A stranger leads the path to a folder that root gave to it, such as its home.
TEST_CASE(test_a_link_of_a_stranger)
{
    char public[FOLDER_PATH_SIZE], home[FOLDER_PATH_SIZE], link[FOLDER_PATH_SIZE];
    struct error err;
    if (geteuid() != 0)
        skip();
    (void)folder_path(public, folder, "public");
    (void)folder_path(home, place, "home");
    (void)folder_path(link, public, "link");
    assert_int_equal(mkdir(public, 0750) | chmod(public, 01777), 0);
    assert_int_equal(mkdir(home, 0750) | chown(home, STRANGER, STRANGER), 0);
    assert_int_equal(check(home, NULL, NULL, &err), STATUS_OK);
    assert_int_equal(symlink(home, link), 0);
    assert_int_equal(check(link, NULL, NULL, &err), STATUS_OK); // a link of root's
    assert_int_equal(lchown(link, STRANGER, STRANGER), 0);
    assert_int_equal(check(link, NULL, NULL, &err), STATUS_DENIED);
    // On the way, and in a folder where a stranger may exchange it.
    assert_int_equal(unlink(link) | symlink(place, link) | lchown(link, STRANGER, STRANGER), 0);
    assert_int_equal(check(folder_path(home, link, "home"), NULL, NULL, &err), STATUS_DENIED);
    assert_int_equal(lchown(link, 0, 0), 0);
    assert_int_equal(check(home, NULL, NULL, &err), STATUS_OK);
    assert_int_equal(chmod(public, 0777), 0);
    assert_int_equal(check(home, NULL, NULL, &err), STATUS_DENIED);
}

TEST_CASE(test_users)
{
    static const char *const bad[] = {"", "no such user", "-1", "4294967295", "1x"};
    struct peer_trust trust;
    struct error err = {0};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(peer_trust_init(&trust, bad[i], &err), STATUS_INVALID);
    const struct wire_peer own = {.kind = PEER_USER, .uid = geteuid()};
    const struct wire_peer root = {.kind = PEER_USER};
    const struct wire_peer loopback = {.kind = PEER_LOOPBACK};
    const struct wire_peer stranger = {.kind = PEER_USER, .uid = STRANGER - 2};
    assert_int_equal(peer_trust_init(&trust, NULL, &err), STATUS_OK);
    assert_true(peer_is_trusted(&trust, &own) && peer_is_trusted(&trust, &root));
    assert_false(peer_is_trusted(&trust, &loopback) || peer_is_trusted(&trust, &stranger));
    assert_int_equal(peer_trust_init(&trust, "65532", &err), STATUS_OK);
    assert_true(peer_is_trusted(&trust, &stranger) && peer_is_trusted(&trust, &own));
    assert_int_equal(peer_trust_init(&trust, "root", &err), STATUS_OK);
    assert_false(peer_is_trusted(&trust, &stranger));
}

// ---- Connections ---------------------------------------------------------------------

static struct wire_context *context;
static struct listener *listener;
static struct address address;

static void open_server(struct port **server)
{
    char endpoint[ADDRESS_TEXT_SIZE];
    const struct wire_listen listen = {.service = ADDRESS_INGEST};
    assert_int_equal(port_open(server, listener,
                               address_endpoint(endpoint, &address, ADDRESS_INGEST), &listen, NULL),
                     STATUS_OK);
}

static void send_one(struct wire_socket *client)
{
    const uint64_t until_ns = clock_monotonic_ns() + UINT64_C(10000000000);
    uint32_t ready;
    while (wire_send(client, "hello", 5) != STATUS_OK) {
        assert_true(clock_monotonic_ns() < until_ns);
        port_wait(NULL, 0, -1, 1000000, &ready);
    }
}

static enum status receive_one(struct wire_socket *socket)
{
    uint32_t ready;
    enum status status;
    struct wire_bytes answer;
    for (int i = 0; i < 500; i++) {
        wire_wait(&socket, 1, -1, 20000000, &ready);
        status = wire_receive(socket, &answer);
        if (status != STATUS_NO_DATA || wire_handshake(socket) == WIRE_HANDSHAKE_CLOSED)
            break;
    }
    return status;
}

static void open_both(struct port **server, struct wire_socket **client,
                      const struct peer_trust *trust)
{
    char endpoint[ADDRESS_TEXT_SIZE];
    (void)snprintf(address.place, sizeof address.place, "%s", place);
    address.is_ipc = true;
    assert_int_equal(wire_context_new(&context, NULL), STATUS_OK);
    assert_int_equal(listener_new(&listener, NULL), STATUS_OK);
    open_server(server);
    assert_int_equal(wire_connect(client, context,
                                  address_endpoint(endpoint, &address, ADDRESS_INGEST),
                                  ADDRESS_INGEST, NULL, trust, NULL),
                     STATUS_OK);
}

static void exchange(struct port *server, struct wire_socket *client, enum status expected)
{
    struct wire_frame frame;
    send_one(client);
    uint32_t ready;
    port_wait(&server, 1, -1, INT64_C(10000000000), &ready);
    assert_int_equal(port_receive(server, &frame), STATUS_OK);
    assert_int_equal(port_send(server, &frame.route, "answer", 6), STATUS_OK);
    port_release(&frame);
    assert_int_equal(receive_one(client), expected);
}

// The folder that was checked is the one that is connected to, whatever is at its path later.
TEST_CASE(test_a_replaced_folder)
{
    char before[FOLDER_PATH_SIZE];
    struct peer_trust trust;
    struct port *server, *impostor;
    struct wire_socket *client;
    assert_int_equal(peer_trust_init(&trust, NULL, NULL), STATUS_OK);
    open_both(&server, &client, &trust);
    exchange(server, client, STATUS_OK);
    assert_int_equal(wire_handshake(client), WIRE_HANDSHAKE_DONE);

    assert_int_equal(rename(place, folder_path(before, folder, "before")), 0);
    assert_int_equal(wire_handshake(client), WIRE_HANDSHAKE_MOVED);
    assert_int_equal(mkdir(place, 0777), 0);
    open_server(&impostor);
    assert_int_equal(wire_handshake(client), WIRE_HANDSHAKE_MOVED);
    exchange(server, client, STATUS_OK);
    port_close(server); // libzmq connects again, but not to the impostor
    uint32_t ready;
    port_wait(&impostor, 1, -1, 300000000, &ready);
    struct wire_frame frame;
    assert_int_equal(wire_send(client, "hello", 5), STATUS_FULL);
    assert_int_equal(port_receive(impostor, &frame), STATUS_NO_DATA);
    wire_close(client);
    port_close(impostor);
    wire_context_free(context);
    listener_free(listener);
}

// The folder is trusted, but the one who answers in it is not.
TEST_CASE(test_an_untrusted_answer)
{
    if (geteuid() != 0)
        skip();
    char endpoint[ADDRESS_TEXT_SIZE];
    struct peer_trust trust;
    struct port *server;
    struct wire_socket *client;
    assert_int_equal(peer_trust_init(&trust, NULL, NULL), STATUS_OK);
    assert_int_equal(chmod(folder, 0711), 0);
    // The kernel tells a socket's peer who called listen().
    (void)snprintf(address.place, sizeof address.place, "%s", place);
    assert_int_equal(chmod(place, 0711), 0);
    assert_int_equal(chown(place, STRANGER, STRANGER), 0);
    assert_int_equal(seteuid(STRANGER), 0);
    address.is_ipc = true;
    assert_int_equal(wire_context_new(&context, NULL), STATUS_OK);
    assert_int_equal(listener_new(&listener, NULL), STATUS_OK);
    open_server(&server);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chown(place, 0, 0), 0);
    char socket[FOLDER_PATH_SIZE];
    assert_int_equal(lchown(folder_path(socket, place, "ingest"), 0, 0), 0);
    assert_int_equal(wire_connect(&client, context,
                                  address_endpoint(endpoint, &address, ADDRESS_INGEST),
                                  ADDRESS_INGEST, NULL, &trust, NULL),
                     STATUS_OK);
    assert_string_equal(wire_trouble(client), "");
    exchange(server, client, STATUS_NO_DATA);
    assert_int_equal(wire_handshake(client), WIRE_HANDSHAKE_CLOSED);
    assert_non_null(strstr(wire_trouble(client), "user 65534, process "));
    assert_non_null(strstr(wire_trouble(client), "not trusted"));
    assert_int_equal(wire_send(client, "hello", 5), STATUS_FULL);
    wire_close(client);
    port_close(server);
    wire_context_free(context);
    listener_free(listener);
}

// ---- The default ---------------------------------------------------------------------

TEST_CASE(test_default_address)
{
    char own[FOLDER_PATH_SIZE + 32], text[ADDRESS_TEXT_SIZE];
    const char *mine = geteuid() == 0 ? "ipc:///run/inferstat" : NULL;
    (void)snprintf(own, sizeof own, "ipc://%s/inferstat", place);
    const struct {
        const char *environment, *runtime_dir, *shown;
        mode_t mode;
    } cases[] = {
        {NULL, place, own, 0700},
        {"", place, own, 0700},
        {"tcp://[::1]:7000", place, "tcp://[::1]:7000", 0700},
        {NULL, NULL, mine, 0700},
        {NULL, "/nowhere", mine, 0700},
        {NULL, "relative", mine, 0700},
        {NULL, place, mine, 0770}, // not only this user's
        {NULL, geteuid() == 0 ? "/run/user/0" : place, geteuid() == 0 ? mine : own, 0700},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct address found;
        assert_int_equal(chmod(place, cases[i].mode), 0);
        assert_int_equal(
            peer_default_address(&found, cases[i].environment, cases[i].runtime_dir, false, NULL),
            STATUS_OK);
        if (cases[i].shown)
            assert_string_equal(address_text(text, &found), cases[i].shown);
    }
    struct address found;
    struct error err = {0};
    assert_int_equal(peer_default_address(&found, "nonsense", NULL, false, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "INFERSTAT_COLLECTOR"));
}

TEST_MAIN_EACH(set_up, tear_down, test_modes, test_a_link, test_owners, test_a_link_of_a_stranger,
               test_users, test_a_replaced_folder, test_an_untrusted_answer, test_default_address)
