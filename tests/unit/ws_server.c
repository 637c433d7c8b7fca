/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/ws_server.h"

#include "common/base/buf.h"
#include "common/base/str.h"

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

bool peer_write(WsPeer *p, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = p->ssl ? SSL_write(p->ssl, at, (int)len) : send(p->fd, at, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool peer_read(WsPeer *p, void *data, size_t len)
{
    char *at = data;

    while (len > 0) {
        ssize_t n = p->ssl ? SSL_read(p->ssl, at, (int)len) : recv(p->fd, at, len, 0);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool peer_read_request(WsPeer *p)
{
    size_t len = 0;

    while (len < sizeof(p->request) - 1 && peer_read(p, p->request + len, 1)) {
        len++;
        p->request[len] = '\0';
        if (len >= 4 && memcmp(p->request + len - 4, "\r\n\r\n", 4) == 0)
            return true;
    }
    return false;
}

bool peer_accept(WsPeer *p, const char *subprotocol)
{
    static const char magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    const char *key = strstr(p->request, "Sec-WebSocket-Key: ");
    unsigned char sum[SHA_DIGEST_LENGTH];
    _cleanup_buf_ Buf seed = BUF_INIT(256), answer = BUF_INIT(1024);

    if (!key)
        return false;
    key += strlen("Sec-WebSocket-Key: ");
    buf_append(&seed, key, strcspn(key, "\r"));
    buf_append_str(&seed, magic);
    SHA1((const unsigned char *)seed.data, seed.len, sum);
    buf_append_str(&answer, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                            "Connection: Upgrade\r\nSec-WebSocket-Accept: ");
    str_base64_encode(&answer, sum, sizeof(sum));
    if (subprotocol)
        buf_printf(&answer, "\r\nSec-WebSocket-Protocol: %s", subprotocol);
    buf_append_str(&answer, "\r\n\r\n");
    return peer_write(p, answer.data, answer.len);
}

bool peer_frame(WsPeer *p, int opcode, bool final, const void *data, size_t len)
{
    unsigned char head[10] = {(unsigned char)((final ? 0x80 : 0) | opcode)};
    size_t n = 2;

    if (len < 126) {
        head[1] = (unsigned char)len;
    } else if (len < 65536) {
        head[1] = 126;
        head[2] = (unsigned char)(len >> 8);
        head[3] = (unsigned char)len;
        n = 4;
    } else {
        head[1] = 127;
        for (size_t i = 0; i < 8; i++)
            head[2 + i] = (unsigned char)((uint64_t)len >> (56 - 8 * i));
        n = 10;
    }
    return peer_write(p, head, n) && peer_write(p, data, len);
}

static bool frame_length(WsPeer *p, unsigned char small, size_t *ret)
{
    unsigned char more[8];
    size_t n = small == 126 ? 2 : small == 127 ? 8 : 0, len = n ? 0 : small;

    if (!peer_read(p, more, n))
        return false;
    for (size_t i = 0; i < n; i++)
        len = len << 8 | more[i];
    *ret = len;
    return true;
}

int peer_read_frame(WsPeer *p, void *data, size_t max, size_t *ret_len)
{
    unsigned char head[2], mask[4], *bytes = data;
    size_t len = 0;

    if (!peer_read(p, head, 2) || !(head[1] & 0x80) || !frame_length(p, head[1] & 0x7f, &len) ||
        len > max || !peer_read(p, mask, 4) || !peer_read(p, data, len))
        return -1;
    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)(bytes[i] ^ mask[i % 4]);
    *ret_len = len;
    return head[0] & 0x0f;
}

bool peer_close(WsPeer *p, unsigned code)
{
    unsigned char data[2] = {(unsigned char)(code >> 8), (unsigned char)code};
    return peer_frame(p, 8, true, data, 2);
}

static void *server_run(void *userdata)
{
    WsServer *s = userdata;
    int fd = -1;

    while ((fd = accept(s->listen_fd, NULL, NULL)) >= 0) {
        WsPeer peer = {.fd = fd, .userdata = s->userdata};
        struct timeval limit = {.tv_sec = 20};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        if (s->ssl) {
            peer.ssl = SSL_new(s->ssl);
            SSL_set_fd(peer.ssl, fd);
        }
        if (!peer.ssl || SSL_accept(peer.ssl) == 1)
            s->script(&peer);
        SSL_free(peer.ssl);
        close(fd);
    }
    return NULL;
}

static X509 *cert_read(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    return cert;
}

static EVP_PKEY *key_read(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    return key;
}

static void server_tls(WsServer *s, const char *cert_pem, const char *key_pem,
                       const char *client_ca)
{
    X509 *cert = cert_read(cert_pem);
    EVP_PKEY *key = key_read(key_pem);

    s->ssl = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(s->ssl, cert);
    SSL_CTX_use_PrivateKey(s->ssl, key);
    if (client_ca) {
        X509 *ca = cert_read(client_ca);
        X509_STORE_add_cert(SSL_CTX_get_cert_store(s->ssl), ca);
        SSL_CTX_set_verify(s->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        X509_free(ca);
    }
    X509_free(cert);
    EVP_PKEY_free(key);
}

void ws_server_start(WsServer *s, WsScript script, void *userdata, const char *cert,
                     const char *key, const char *client_ca)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);

    *s = (WsServer){.script = script, .userdata = userdata};
    s->listen_fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(s->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
        listen(s->listen_fd, 64) < 0 ||
        getsockname(s->listen_fd, (struct sockaddr *)&addr, &len) < 0)
        abort();
    s->port = ntohs(addr.sin_port);
    if (cert)
        server_tls(s, cert, key, client_ca);
    if (pthread_create(&s->thread, NULL, server_run, s) != 0)
        abort();
}

void ws_server_stop(WsServer *s)
{
    shutdown(s->listen_fd, SHUT_RDWR); /* ends accept() */
    pthread_join(s->thread, NULL);
    close(s->listen_fd);
    SSL_CTX_free(s->ssl);
}

static char *bio_text(BIO *bio)
{
    char *data = NULL;
    long len = BIO_get_mem_data(bio, &data);
    char *text = xstrndup(data, (size_t)len);
    BIO_free(bio);
    return text;
}

static void cert_extend(X509 *cert, int nid, const char *value)
{
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    X509_add_ext(cert, ext, -1);
    X509_EXTENSION_free(ext);
}

void test_cert_new(const char *name, const char *issuer_cert, const char *issuer_key,
                   char **ret_cert, char **ret_key)
{
    static long serial = 1;
    X509 *cert = X509_new(), *issuer = issuer_cert ? cert_read(issuer_cert) : NULL;
    EVP_PKEY *key = EVP_EC_gen("P-256"), *signer = issuer_key ? key_read(issuer_key) : NULL;
    struct in_addr number;
    bool is_number = inet_pton(AF_INET, name, &number) == 1;
    _cleanup_free_ char *san = xasprintf("%s:%s", is_number ? "IP" : "DNS", name);
    BIO *cert_bio = BIO_new(BIO_s_mem()), *key_bio = BIO_new(BIO_s_mem());

    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(issuer ? issuer : cert));
    X509_set_pubkey(cert, key);
    cert_extend(cert, NID_basic_constraints, issuer ? "CA:FALSE" : "critical,CA:TRUE");
    if (issuer)
        cert_extend(cert, NID_subject_alt_name, san);
    X509_sign(cert, signer ? signer : key, EVP_sha256());

    PEM_write_bio_X509(cert_bio, cert);
    PEM_write_bio_PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL);
    *ret_cert = bio_text(cert_bio);
    *ret_key = bio_text(key_bio);
    X509_free(cert);
    X509_free(issuer);
    EVP_PKEY_free(key);
    EVP_PKEY_free(signer);
}
