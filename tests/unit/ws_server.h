/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A WebSocket server for tests: one thread that accepts connections on a loopback port and runs a
 * script on each, one after another. Frames are written by hand, so that a test decides where they
 * are cut.
 */
#pragma once

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct WsPeer {
    int fd;
    SSL *ssl;
    char request[16384]; /* the head of the upgrade request */
    void *userdata;
} WsPeer;

typedef void (*WsScript)(WsPeer *peer);

typedef struct WsServer {
    int listen_fd;
    int port;
    SSL_CTX *ssl;
    WsScript script;
    void *userdata;
    pthread_t thread;
} WsServer;

/* cert and key: PEM; NULL: no TLS. client_ca: demand a client certificate of this CA. */
void ws_server_start(WsServer *s, WsScript script, void *userdata, const char *cert,
                     const char *key, const char *client_ca);
void ws_server_stop(WsServer *s);

/* For scripts. Each returns false when the client is gone. */
bool peer_write(WsPeer *p, const void *data, size_t len);
bool peer_read(WsPeer *p, void *data, size_t len);
bool peer_read_request(WsPeer *p); /* fills request */
/* Answers 101 with this subprotocol (NULL: without one). */
bool peer_accept(WsPeer *p, const char *subprotocol);
bool peer_frame(WsPeer *p, int opcode, bool final, const void *data, size_t len);
/* Reads one frame and unmasks it; returns its opcode or -1. */
int peer_read_frame(WsPeer *p, void *data, size_t max, size_t *ret_len);
bool peer_close(WsPeer *p, unsigned code);

/* A certificate and key as PEM, owned by the caller; name: a DNS name or an IP address. issuer
 * NULL: a CA that signs itself. */
void test_cert_new(const char *name, const char *issuer_cert, const char *issuer_key,
                   char **ret_cert, char **ret_key);
