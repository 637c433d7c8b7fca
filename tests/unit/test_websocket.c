/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/net/websocket.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/ws_server.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_MAX (300 * 1024)

/* What happened to one connection; written by the service thread. */
typedef struct Seen {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool opened, closed;
    unsigned firsts, lasts, writables;
    char subprotocol[64];
    Buf data;
    Error *error;
} Seen;

typedef struct Fixture {
    WsServer server;
    WsClient *client;
    Seen seen;
    WsConn *conn; /* service thread */
    WsConnectOptions connect;
    const void *to_send; /* when opened */
    size_t to_send_len;
    bool close_when_opened;
    int connect_result;
    Error *connect_error;
} Fixture;

static void on_opened(WsConn *conn, const char *subprotocol, void *userdata)
{
    Fixture *f = userdata;

    pthread_mutex_lock(&f->seen.lock);
    f->seen.opened = true;
    snprintf(f->seen.subprotocol, sizeof(f->seen.subprotocol), "%s", subprotocol);
    pthread_cond_broadcast(&f->seen.changed);
    pthread_mutex_unlock(&f->seen.lock);
    if (f->to_send)
        assert_int_equal(ws_send(conn, f->to_send, f->to_send_len), 0);
    if (f->close_when_opened)
        ws_close(conn);
}

static void on_message(WsConn *conn, const char *data, size_t len, bool first, bool last,
                       void *userdata)
{
    Fixture *f = userdata;
    (void)conn;

    pthread_mutex_lock(&f->seen.lock);
    f->seen.firsts += first;
    f->seen.lasts += last;
    buf_append(&f->seen.data, data, len);
    pthread_cond_broadcast(&f->seen.changed);
    pthread_mutex_unlock(&f->seen.lock);
}

static void on_writable(WsConn *conn, void *userdata)
{
    Fixture *f = userdata;

    assert_int_equal(ws_queued(conn), 0);
    pthread_mutex_lock(&f->seen.lock);
    f->seen.writables++;
    pthread_mutex_unlock(&f->seen.lock);
}

static void on_closed(WsConn *conn, const Error *error, void *userdata)
{
    Fixture *f = userdata;
    (void)conn;

    pthread_mutex_lock(&f->seen.lock);
    assert_false(f->seen.closed);
    f->seen.closed = true;
    f->seen.error = error_copy(error);
    pthread_cond_broadcast(&f->seen.changed);
    pthread_mutex_unlock(&f->seen.lock);
}

static const WsHandlers handlers = {
    .opened = on_opened, .message = on_message, .writable = on_writable, .closed = on_closed};

static void do_connect(void *userdata)
{
    Fixture *f = userdata;

    int r = ws_connect(f->client, &f->connect, &handlers, f, &f->conn, &f->connect_error);
    if (r < 0)
        on_closed(NULL, f->connect_error, f);
}

static void do_close(void *userdata)
{
    Fixture *f = userdata;
    ws_close(f->conn);
}

/* Waits for a member of Seen to become true (or, for the data, long enough). */
#define WAIT_FOR(f, condition)                                                                     \
    do {                                                                                           \
        struct timespec _end;                                                                      \
        clock_gettime(CLOCK_REALTIME, &_end);                                                      \
        _end.tv_sec += 20;                                                                         \
        int _r = 0;                                                                                \
        pthread_mutex_lock(&(f)->seen.lock);                                                       \
        while (_r == 0 && !(condition))                                                            \
            _r = pthread_cond_timedwait(&(f)->seen.changed, &(f)->seen.lock, &_end);               \
        pthread_mutex_unlock(&(f)->seen.lock);                                                     \
        assert_int_equal(_r, 0);                                                                   \
    } while (0)

static void fixture_start(Fixture *f, WsScript script, const WsClientOptions *options)
{
    static const WsClientOptions plain;
    WsClientOptions o = options ? *options : plain;
    _cleanup_free_ char *url = NULL;
    _cleanup_error_ Error *error = NULL;

    if (f->server.port == 0)
        ws_server_start(&f->server, script, f, NULL, NULL, NULL);
    url = xasprintf("http%s://127.0.0.1:%d", f->server.ssl ? "s" : "", f->server.port);
    o.url = url;
    o.user_agent = "tests/1";
    if (!f->connect.path)
        f->connect.path = "/there?a=b%20c";
    f->connect.subprotocols = "v6.other,v5.channel.k8s.io";
    pthread_mutex_init(&f->seen.lock, NULL);
    pthread_cond_init(&f->seen.changed, NULL);
    f->seen.data = BUF_INIT(4 * 1024 * 1024);
    assert_int_equal(ws_client_new(&o, &f->client, &error), 0);
    assert_int_equal(ws_post(f->client, do_connect, f), 0);
}

static void fixture_stop(Fixture *f)
{
    ws_client_free(f->client);
    ws_server_stop(&f->server);
    buf_done(&f->seen.data);
    error_free(f->seen.error);
    error_free(f->connect_error);
    pthread_mutex_destroy(&f->seen.lock);
    pthread_cond_destroy(&f->seen.changed);
}

/* --- messages --- */

static void script_echo(WsPeer *p)
{
    char *data = xmalloc(FRAME_MAX);
    size_t len = 0;
    int opcode = -1;

    if (peer_read_request(p) && peer_accept(p, "v5.channel.k8s.io"))
        while ((opcode = peer_read_frame(p, data, FRAME_MAX, &len)) >= 0 && opcode != 8)
            if (opcode == 2 && !peer_frame(p, 2, true, data, len))
                break;
    if (opcode == 8)
        (void)peer_frame(p, 8, true, data, len);
    free(data);
}

static void test_echo_of_every_length_class(void **state)
{
    static const size_t lengths[] = {1, 125, 126, 127, 65535, 65536, 200000};
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        Fixture f = {.to_send_len = lengths[i]};
        char *data = xmalloc(lengths[i]);
        for (size_t k = 0; k < lengths[i]; k++)
            data[k] = (char)(k * 7 + k / 251);
        f.to_send = data;
        fixture_start(&f, script_echo, NULL);
        WAIT_FOR(&f, f.seen.data.len >= lengths[i] && f.seen.lasts == 1);
        assert_string_equal(f.seen.subprotocol, "v5.channel.k8s.io");
        assert_int_equal(f.seen.firsts, 1);
        assert_int_equal(f.seen.data.len, lengths[i]);
        assert_memory_equal(f.seen.data.data, data, lengths[i]);
        assert_int_equal(ws_post(f.client, do_close, &f), 0);
        WAIT_FOR(&f, f.seen.closed);
        assert_null(f.seen.error);
        assert_true(f.seen.writables >= 1);
        fixture_stop(&f);
        free(data);
    }
}

static void script_fragments(WsPeer *p)
{
    char data[256];
    size_t len = 0;

    if (!peer_read_request(p) || !peer_accept(p, "v5.channel.k8s.io"))
        return;
    peer_frame(p, 2, false, "", 0); /* an empty first piece, a ping between the pieces */
    peer_frame(p, 0, false, "one", 3);
    peer_frame(p, 9, true, "hello", 5);
    peer_frame(p, 0, true, "two", 3);
    peer_frame(p, 2, true, "", 0); /* an empty message */
    if (peer_read_frame(p, data, sizeof(data), &len) != 10 || len != 5 || memcmp(data, "hello", 5))
        return; /* no pong: the client sees a lost connection */
    peer_close(p, 1000);
    (void)peer_read_frame(p, data, sizeof(data), &len);
}

static void test_fragments_pings_and_empty_messages(void **state)
{
    Fixture f = {0};
    (void)state;

    fixture_start(&f, script_fragments, NULL);
    WAIT_FOR(&f, f.seen.closed);
    assert_null(f.seen.error);
    assert_int_equal(f.seen.firsts, 2);
    assert_int_equal(f.seen.lasts, 2);
    assert_string_equal(buf_str(&f.seen.data), "onetwo");
    fixture_stop(&f);
}

static void script_request(WsPeer *p)
{
    if (peer_read_request(p) && peer_accept(p, "v5.channel.k8s.io"))
        peer_frame(p, 2, true, p->request, strlen(p->request));
}

static void test_request_carries_path_token_and_agent(void **state)
{
    char token[6001] = {0};
    Fixture f = {.connect = {.bearer_token = token}};
    (void)state;

    memset(token, 't', sizeof(token) - 1);
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* must not be used */
    fixture_start(&f, script_request, NULL);
    WAIT_FOR(&f, f.seen.lasts == 1);
    unsetenv("http_proxy");
    const char *request = buf_str(&f.seen.data);
    assert_ptr_equal(strstr(request, "GET /there?a=b%20c HTTP/1.1\r\n"), request);
    assert_non_null(strcasestr(request, "\r\nuser-agent: tests/1\r\n"));
    assert_non_null(strstr(request, "Sec-WebSocket-Protocol: v6.other,v5.channel.k8s.io\r\n"));
    const char *authorization = strcasestr(request, "\r\nauthorization: Bearer ");
    assert_non_null(authorization);
    assert_int_equal(strspn(authorization + strlen("\r\nauthorization: Bearer "), "t"), 6000);
    fixture_stop(&f);
}

/* --- endings --- */

typedef struct Refusal {
    const char *answer;
    ErrorKind kind;
    int status;
} Refusal;

static const Refusal *refusal;

static void script_refuse(WsPeer *p)
{
    if (peer_read_request(p))
        peer_write(p, refusal->answer, strlen(refusal->answer));
}

static void test_refused_upgrades(void **state)
{
    static const Refusal refusals[] = {
        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}", ERROR_DENIED, 403},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", ERROR_NOT_FOUND, 404},
        {"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", ERROR_UNAUTHENTICATED, 401},
        {"HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\n\r\n", ERROR_EXHAUSTED, 429},
        {"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
         ERROR_UNAVAILABLE, 500},
        {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
         ERROR_UNAVAILABLE, 302},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ERROR_UNAVAILABLE, 0},
        {"rubbish\r\n\r\n", ERROR_UNAVAILABLE, 0},
        {"", ERROR_UNAVAILABLE, 0},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        Fixture f = {0};
        refusal = &refusals[i];
        fixture_start(&f, script_refuse, NULL);
        WAIT_FOR(&f, f.seen.closed);
        assert_false(f.seen.opened);
        assert_non_null(f.seen.error);
        assert_int_equal(f.seen.error->http_status, refusals[i].status);
        assert_string_equal(error_kind_to_string(f.seen.error->kind),
                            error_kind_to_string(refusals[i].kind));
        fixture_stop(&f);
    }
}

static void script_no_subprotocol(WsPeer *p)
{
    char c;
    if (peer_read_request(p) && peer_accept(p, NULL))
        (void)peer_read(p, &c, 1);
}

static void script_foreign_subprotocol(WsPeer *p)
{
    char c;
    if (peer_read_request(p) && peer_accept(p, "v1.surprise"))
        (void)peer_read(p, &c, 1);
}

static void test_subprotocol_must_be_ours(void **state)
{
    static const WsScript scripts[] = {script_no_subprotocol, script_foreign_subprotocol};
    (void)state;

    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        Fixture f = {0};
        fixture_start(&f, scripts[i], NULL);
        WAIT_FOR(&f, f.seen.closed);
        assert_false(f.seen.opened);
        assert_int_equal(f.seen.error->kind, ERROR_UNAVAILABLE);
        fixture_stop(&f);
    }
}

static void script_lost(WsPeer *p)
{
    if (peer_read_request(p) && peer_accept(p, "v5.channel.k8s.io"))
        peer_frame(p, 2, false, "half", 4);
}

static void script_code_1011(WsPeer *p)
{
    char c;
    if (peer_read_request(p) && peer_accept(p, "v5.channel.k8s.io") && peer_close(p, 1011))
        (void)peer_read(p, &c, 1);
}

static void test_lost_and_abnormal_ends_are_errors(void **state)
{
    Fixture lost = {0}, code = {0};
    (void)state;

    fixture_start(&lost, script_lost, NULL);
    WAIT_FOR(&lost, lost.seen.closed);
    assert_int_equal(lost.seen.lasts, 0);
    assert_int_equal(lost.seen.error->kind, ERROR_UNAVAILABLE);
    fixture_stop(&lost);

    fixture_start(&code, script_code_1011, NULL);
    WAIT_FOR(&code, code.seen.closed);
    assert_non_null(strstr(code.seen.error->message, "1011"));
    fixture_stop(&code);
}

static void script_mute(WsPeer *p)
{
    char c;
    while (peer_read(p, &c, 1))
        ;
}

static void test_open_has_a_deadline(void **state)
{
    Fixture f = {.connect = {.open_timeout_ms = 100}};
    int64_t start_ms = clock_monotonic_ms(&clock_system);
    (void)state;

    fixture_start(&f, script_mute, NULL);
    WAIT_FOR(&f, f.seen.closed);
    assert_int_equal(f.seen.error->kind, ERROR_TIMEOUT);
    assert_in_range(clock_monotonic_ms(&clock_system) - start_ms, 100, 5000);
    fixture_stop(&f);
}

static void script_open_and_mute(WsPeer *p)
{
    if (peer_read_request(p) && peer_accept(p, "v5.channel.k8s.io"))
        script_mute(p);
}

static void test_silent_peer_is_noticed(void **state)
{
    const WsClientOptions options = {.silence_ms = 300};
    Fixture f = {0};
    (void)state;

    fixture_start(&f, script_open_and_mute, &options);
    WAIT_FOR(&f, f.seen.closed);
    assert_true(f.seen.opened);
    assert_int_equal(f.seen.error->kind, ERROR_UNAVAILABLE);
    assert_non_null(strstr(f.seen.error->message, "does not answer"));
    fixture_stop(&f);
}

static void script_pongs(WsPeer *p)
{
    char data[256];
    size_t len = 0;
    unsigned pings = 0;

    if (!peer_read_request(p) || !peer_accept(p, "v5.channel.k8s.io"))
        return;
    while (pings < 8 && peer_read_frame(p, data, sizeof(data), &len) == 9) {
        pings++;
        peer_frame(p, 10, true, data, len);
    }
    peer_close(p, 1000);
    (void)peer_read_frame(p, data, sizeof(data), &len);
}

static void test_pongs_keep_a_quiet_stream_open(void **state)
{
    const WsClientOptions options = {.silence_ms = 600};
    Fixture f = {0};
    int64_t start_ms = clock_monotonic_ms(&clock_system);
    (void)state;

    fixture_start(&f, script_pongs, &options);
    WAIT_FOR(&f, f.seen.closed);
    assert_null(f.seen.error); /* eight pings, 200 ms apart */
    assert_true(clock_monotonic_ms(&clock_system) - start_ms > 1000);
    fixture_stop(&f);
}

static void test_close_before_and_without_an_answer(void **state)
{
    Fixture early = {0}, mute = {.close_when_opened = true};
    (void)state;

    fixture_start(&early, script_mute, NULL);
    assert_int_equal(ws_post(early.client, do_close, &early), 0);
    WAIT_FOR(&early, early.seen.closed);
    assert_int_equal(early.seen.error->kind, ERROR_CANCELLED);
    fixture_stop(&early);

    fixture_start(&mute, script_open_and_mute, NULL);
    WAIT_FOR(&mute, mute.seen.closed);
    assert_null(mute.seen.error);
    fixture_stop(&mute);
}

static void test_free_closes_what_is_open(void **state)
{
    Fixture f = {0};
    (void)state;

    fixture_start(&f, script_open_and_mute, NULL);
    WAIT_FOR(&f, f.seen.opened);
    f.client = ws_client_free(f.client);
    assert_true(f.seen.closed);
    assert_int_equal(f.seen.error->kind, ERROR_CANCELLED);
    fixture_stop(&f);
}

/* --- limits --- */

static void do_fill_queue(void *userdata)
{
    Fixture *f = userdata;
    char *block = xcalloc(1, 64 * 1024);
    int r = 0;
    size_t n = 0;

    while ((r = ws_send(f->conn, block, 64 * 1024)) == 0)
        n++;
    free(block);
    pthread_mutex_lock(&f->seen.lock);
    f->connect_result = r;
    f->seen.firsts = (unsigned)n;
    f->seen.lasts = 1;
    pthread_cond_broadcast(&f->seen.changed);
    pthread_mutex_unlock(&f->seen.lock);
}

static void test_queue_has_a_ceiling(void **state)
{
    Fixture f = {0};
    (void)state;

    fixture_start(&f, script_open_and_mute, NULL);
    WAIT_FOR(&f, f.seen.opened);
    assert_int_equal(ws_post(f.client, do_fill_queue, &f), 0);
    WAIT_FOR(&f, f.seen.lasts == 1);
    assert_int_equal(f.connect_result, -ENOBUFS);
    assert_int_equal(f.seen.firsts, WS_QUEUE_MAX / (64 * 1024));
    fixture_stop(&f);
}

static void test_request_line_has_a_ceiling(void **state)
{
    char path[4000];
    Fixture f = {.connect = {.path = path}};
    (void)state;

    memset(path, '/', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    fixture_start(&f, script_mute, NULL);
    WAIT_FOR(&f, f.seen.closed);
    assert_int_equal(f.seen.error->kind, ERROR_TOO_LARGE);
    fixture_stop(&f);
}

/* --- TLS --- */

typedef struct Certs {
    char *ca, *ca_key, *other_ca, *other_ca_key;
    char *server, *server_key, *named, *named_key, *client, *client_key;
} Certs;

static int certs_setup(void **state)
{
    static Certs c;

    test_cert_new("tests-ca", NULL, NULL, &c.ca, &c.ca_key);
    test_cert_new("other-ca", NULL, NULL, &c.other_ca, &c.other_ca_key);
    test_cert_new("127.0.0.1", c.ca, c.ca_key, &c.server, &c.server_key);
    test_cert_new("api.example", c.ca, c.ca_key, &c.named, &c.named_key);
    test_cert_new("somebody", c.ca, c.ca_key, &c.client, &c.client_key);
    *state = &c;
    return 0;
}

static int certs_teardown(void **state)
{
    Certs *c = *state;
    char **all[] = {&c->ca,         &c->ca_key, &c->other_ca,  &c->other_ca_key, &c->server,
                    &c->server_key, &c->named,  &c->named_key, &c->client,       &c->client_key};

    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        free(TAKE_PTR(*all[i]));
    return 0;
}

static void script_open_and_close(WsPeer *p)
{
    char data[64];
    size_t len = 0;

    if (peer_read_request(p) && peer_accept(p, "v5.channel.k8s.io") && peer_close(p, 1000))
        (void)peer_read_frame(p, data, sizeof(data), &len);
}

/* Returns the problem's text; NULL: it opened and closed cleanly. */
static char *tls_outcome(const char *cert, const char *key, const char *client_ca,
                         const WsClientOptions *options)
{
    Fixture f = {0};
    char *problem = NULL;

    ws_server_start(&f.server, script_open_and_close, &f, cert, key, client_ca);
    fixture_start(&f, NULL, options);
    WAIT_FOR(&f, f.seen.closed);
    if (f.seen.error)
        problem = xstrdup(f.seen.error->message);
    assert_true(problem || f.seen.opened);
    fixture_stop(&f);
    return problem;
}

static void test_tls_trusts_the_given_ca_alone(void **state)
{
    const Certs *c = *state;
    const WsClientOptions right = {.ca_pem = c->ca}, wrong = {.ca_pem = c->other_ca};
    const WsClientOptions insecure = {.ca_pem = c->other_ca, .insecure_skip_verify = true};
    _cleanup_free_ char *both = xasprintf("%s%s", c->other_ca, c->ca);
    const WsClientOptions bundle = {.ca_pem = both};

    assert_null(tls_outcome(c->server, c->server_key, NULL, &right));
    assert_null(tls_outcome(c->server, c->server_key, NULL, &bundle));
    assert_null(tls_outcome(c->server, c->server_key, NULL, &insecure));
    _cleanup_free_ char *problem = tls_outcome(c->server, c->server_key, NULL, &wrong);
    assert_non_null(problem);
    assert_non_null(strstr(problem, "certificate is not accepted"));
}

static void test_tls_checks_the_name(void **state)
{
    const Certs *c = *state;
    const WsClientOptions by_number = {.ca_pem = c->ca};
    const WsClientOptions by_name = {.ca_pem = c->ca, .tls_server_name = "api.example"};
    const WsClientOptions by_other = {.ca_pem = c->ca, .tls_server_name = "api.example.org"};

    assert_null(tls_outcome(c->named, c->named_key, NULL, &by_name));
    _cleanup_free_ char *number = tls_outcome(c->named, c->named_key, NULL, &by_number);
    assert_non_null(strstr(number, "not accepted"));
    _cleanup_free_ char *other = tls_outcome(c->named, c->named_key, NULL, &by_other);
    assert_non_null(strstr(other, "not accepted"));
}

static void test_tls_shows_the_client_certificate(void **state)
{
    const Certs *c = *state;
    const WsClientOptions with = {
        .ca_pem = c->ca, .client_cert_pem = c->client, .client_key_pem = c->client_key};
    const WsClientOptions without = {.ca_pem = c->ca};

    assert_null(tls_outcome(c->server, c->server_key, c->ca, &with));
    _cleanup_free_ char *problem = tls_outcome(c->server, c->server_key, c->ca, &without);
    assert_non_null(problem);
}

static void test_tls_trust_can_be_replaced(void **state)
{
    const Certs *c = *state;
    const WsClientOptions wrong = {.ca_pem = c->other_ca};
    _cleanup_error_ Error *error = NULL;
    Fixture f = {0};

    ws_server_start(&f.server, script_open_and_close, &f, c->server, c->server_key, NULL);
    fixture_start(&f, NULL, &wrong);
    WAIT_FOR(&f, f.seen.closed);
    assert_non_null(f.seen.error);
    f.seen.error = error_free(f.seen.error);
    f.seen.closed = false;
    assert_int_equal(ws_client_set_tls(f.client, c->ca, NULL, NULL, &error), 0);
    assert_int_equal(ws_post(f.client, do_connect, &f), 0);
    WAIT_FOR(&f, f.seen.closed);
    assert_null(f.seen.error);
    assert_true(f.seen.opened);
    fixture_stop(&f);
}

static void test_bad_options_are_refused(void **state)
{
    const Certs *c = *state;
    const WsClientOptions bad[] = {
        {.url = "ftp://127.0.0.1:1"},
        {.url = "http://"},
        {.url = "http://127.0.0.1:0"},
        {.url = "http://127.0.0.1:99999"},
        {.url = "http://[::1"},
        {.url = "https://127.0.0.1:1"}, /* no CA */
        {.url = "https://127.0.0.1:1", .ca_pem = "no certificate"},
        {.url = "https://127.0.0.1:1",
         .ca_pem = c->ca,
         .client_cert_pem = c->client,
         .client_key_pem = c->ca_key},
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        _cleanup_error_ Error *error = NULL;
        WsClient *client = NULL;
        assert_true(ws_client_new(&bad[i], &client, &error) < 0);
        assert_non_null(error);
        assert_int_equal(error->kind, ERROR_INVALID);
        assert_null(client);
    }
}

/* --- timers and posts --- */

typedef struct Ticks {
    WsClient *client;
    LoopTimer timers[3];
    pthread_mutex_t lock;
    char order[8];
    unsigned posts;
} Ticks;

static void tick_note(Ticks *t, char c)
{
    pthread_mutex_lock(&t->lock);
    t->order[strlen(t->order)] = c;
    pthread_mutex_unlock(&t->lock);
}

static void tick_first(void *userdata)
{
    Ticks *t = userdata;
    ws_timer_stop(t->client, &t->timers[2]);
    tick_note(t, '1');
}

static void tick_second(void *userdata)
{
    tick_note(userdata, '2');
}

static void tick_never(void *userdata)
{
    tick_note(userdata, 'X');
}

static void ticks_arm(void *userdata)
{
    Ticks *t = userdata;
    const LoopFn fns[] = {tick_second, tick_first, tick_never};

    for (size_t i = 0; i < 3; i++)
        t->timers[i] = (LoopTimer){.fn = fns[i], .userdata = t};
    ws_timer_set(t->client, &t->timers[0], 60);
    ws_timer_set(t->client, &t->timers[2], 50);
    ws_timer_set(t->client, &t->timers[1], 10);
}

static void post_count(void *userdata)
{
    Ticks *t = userdata;
    pthread_mutex_lock(&t->lock);
    t->posts++;
    pthread_mutex_unlock(&t->lock);
}

static void *post_many(void *userdata)
{
    Ticks *t = userdata;
    for (unsigned i = 0; i < 5000; i++)
        assert_int_equal(ws_post(t->client, post_count, t), 0);
    return NULL;
}

static bool ticks_done(Ticks *t)
{
    pthread_mutex_lock(&t->lock);
    bool done = str_eq(t->order, "12") && t->posts == 20000;
    pthread_mutex_unlock(&t->lock);
    return done;
}

static void test_timers_and_posts_from_four_threads(void **state)
{
    const WsClientOptions options = {.url = "http://127.0.0.1:1"};
    Ticks t = {.posts = 0};
    pthread_t threads[4];
    _cleanup_error_ Error *error = NULL;
    (void)state;

    pthread_mutex_init(&t.lock, NULL);
    assert_int_equal(ws_client_new(&options, &t.client, &error), 0);
    assert_int_equal(ws_post(t.client, ticks_arm, &t), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &t), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        pthread_join(threads[i], NULL);
    int64_t end_ms = clock_monotonic_ms(&clock_system) + 20000;
    while (!ticks_done(&t) && clock_monotonic_ms(&clock_system) < end_ms)
        usleep(1000);
    assert_true(ticks_done(&t));
    ws_client_free(t.client);
    pthread_mutex_destroy(&t.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_echo_of_every_length_class),
        cmocka_unit_test(test_fragments_pings_and_empty_messages),
        cmocka_unit_test(test_request_carries_path_token_and_agent),
        cmocka_unit_test(test_refused_upgrades),
        cmocka_unit_test(test_subprotocol_must_be_ours),
        cmocka_unit_test(test_lost_and_abnormal_ends_are_errors),
        cmocka_unit_test(test_open_has_a_deadline),
        cmocka_unit_test(test_silent_peer_is_noticed),
        cmocka_unit_test(test_pongs_keep_a_quiet_stream_open),
        cmocka_unit_test(test_close_before_and_without_an_answer),
        cmocka_unit_test(test_free_closes_what_is_open),
        cmocka_unit_test(test_queue_has_a_ceiling),
        cmocka_unit_test(test_request_line_has_a_ceiling),
        cmocka_unit_test_setup_teardown(test_tls_trusts_the_given_ca_alone, certs_setup,
                                        certs_teardown),
        cmocka_unit_test_setup_teardown(test_tls_checks_the_name, certs_setup, certs_teardown),
        cmocka_unit_test_setup_teardown(test_tls_shows_the_client_certificate, certs_setup,
                                        certs_teardown),
        cmocka_unit_test_setup_teardown(test_tls_trust_can_be_replaced, certs_setup,
                                        certs_teardown),
        cmocka_unit_test_setup_teardown(test_bad_options_are_refused, certs_setup, certs_teardown),
        cmocka_unit_test(test_timers_and_posts_from_four_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
