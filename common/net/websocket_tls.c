/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "common/net/websocket-internal.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#define CERTS_MAX 64 /* in one PEM text */

struct WsTlsMaterial {
    X509_STORE *trust;      /* NULL: nothing is trusted */
    STACK_OF(X509) * chain; /* client certificate first; NULL: none */
    EVP_PKEY *key;
};

DEFINE_CLEANUP(BIO *, BIO_free_all);

/* The first error of OpenSSL's queue in words. Empties the queue. */
static const char *ssl_reason(void)
{
    unsigned long code = ERR_get_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;

    ERR_clear_error();
    return reason ? reason : "unknown error";
}

static void certs_free(STACK_OF(X509) * certs)
{
    sk_X509_pop_free(certs, X509_free);
}

static int pem_certs(const char *pem, const char *what, STACK_OF(X509) * *ret, Error **error)
{
    _cleanup_(BIO_free_allp) BIO *bio = BIO_new_mem_buf(pem, -1);
    STACK_OF(X509) *certs = sk_X509_new_null();
    X509 *cert = NULL;

    while (bio && certs && sk_X509_num(certs) < CERTS_MAX &&
           (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)))
        if (sk_X509_push(certs, cert) <= 0)
            X509_free(cert);
    if (!certs || sk_X509_num(certs) == 0) {
        certs_free(certs);
        return error_set(error, ERROR_INVALID, "no certificate in the %s: %s", what, ssl_reason());
    }
    ERR_clear_error(); /* the end of the text counts as an error */
    *ret = certs;
    return 0;
}

static int trust_load(WsTlsMaterial *m, const char *ca_pem, Error **error)
{
    STACK_OF(X509) *certs = NULL;
    int r = pem_certs(ca_pem, "CA bundle", &certs, error);

    if (r < 0)
        return r;
    m->trust = X509_STORE_new();
    for (int i = 0; m->trust && i < sk_X509_num(certs); i++)
        (void)X509_STORE_add_cert(m->trust, sk_X509_value(certs, i));
    certs_free(certs);
    ERR_clear_error();
    if (!m->trust)
        return error_set(error, ERROR_INTERNAL, "cannot make a certificate store");
    return 0;
}

static int key_load(WsTlsMaterial *m, const char *key_pem, Error **error)
{
    _cleanup_(BIO_free_allp) BIO *bio = BIO_new_mem_buf(key_pem, -1);

    if (bio)
        m->key = PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)(uintptr_t) "");
    if (!m->key)
        return error_set(error, ERROR_INVALID, "cannot read the client key: %s", ssl_reason());
    if (X509_check_private_key(sk_X509_value(m->chain, 0), m->key) != 1)
        return error_set(error, ERROR_INVALID, "the client key does not fit its certificate: %s",
                         ssl_reason());
    return 0;
}

int ws_tls_material_new(const char *ca_pem, const char *cert_pem, const char *key_pem,
                        WsTlsMaterial **ret, Error **error)
{
    _cleanup_(ws_tls_material_freep) WsTlsMaterial *m = xnew(WsTlsMaterial);
    int r = 0;

    if (!str_empty(ca_pem))
        r = trust_load(m, ca_pem, error);
    if (r >= 0 && !str_empty(cert_pem) && !str_empty(key_pem)) {
        r = pem_certs(cert_pem, "client certificate", &m->chain, error);
        if (r >= 0)
            r = key_load(m, key_pem, error);
    }
    if (r < 0)
        return r;
    *ret = TAKE_PTR(m);
    return 0;
}

WsTlsMaterial *ws_tls_material_free(WsTlsMaterial *m)
{
    if (!m)
        return NULL;
    X509_STORE_free(m->trust);
    certs_free(m->chain);
    EVP_PKEY_free(m->key);
    free(m);
    return NULL;
}

SSL_CTX *ws_tls_context_new(const char *verify_name, Error **error)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    if (!ctx) {
        error_set(error, ERROR_INTERNAL, "cannot set TLS up: %s", ssl_reason());
        return NULL;
    }
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);

    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(ctx);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    int ok = ws_is_numeric(verify_name) ? X509_VERIFY_PARAM_set1_ip_asc(param, verify_name)
                                        : X509_VERIFY_PARAM_set1_host(param, verify_name, 0);
    if (ok != 1) {
        SSL_CTX_free(ctx);
        error_set(error, ERROR_INVALID, "'%.200s' is no name a certificate can carry", verify_name);
        return NULL;
    }
    return ctx;
}

static int client_cert_apply(SSL_CTX *ctx, const WsTlsMaterial *m)
{
    if (SSL_CTX_use_certificate(ctx, sk_X509_value(m->chain, 0)) != 1)
        return -EIO;
    (void)SSL_CTX_clear_chain_certs(ctx);
    for (int i = 1; i < sk_X509_num(m->chain); i++)
        if (SSL_CTX_add1_chain_cert(ctx, sk_X509_value(m->chain, i)) != 1)
            return -EIO;
    return SSL_CTX_use_PrivateKey(ctx, m->key) == 1 ? 0 : -EIO;
}

int ws_tls_context_apply(SSL_CTX *ctx, const WsTlsMaterial *m, Error **error)
{
    if (m->trust)
        SSL_CTX_set1_cert_store(ctx, m->trust);
    if (m->chain && client_cert_apply(ctx, m) < 0)
        return error_set(error, ERROR_INVALID, "cannot use the client certificate: %s",
                         ssl_reason());
    return 0;
}
