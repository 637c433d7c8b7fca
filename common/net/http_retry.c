/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"
#include "common/net/http_client.h"

#define BACKOFF_BASE_MS 200
#define BACKOFF_MAX_MS 10000
#define RETRY_AFTER_MAX_MS (int64_t)(60 * 60 * 1000)

/* Verbs whose repetition has the effect of one, given the preconditions that every write carries.
 */
static bool method_is_repeatable(const char *method)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "PATCH", "DELETE"};
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
        if (str_eq(method, methods[i]))
            return true;
    return false;
}

static bool status_is_transient(int status)
{
    return status == 500 || status == 502 || status == 503 || status == 504;
}

static bool may_repeat(const char *method, int status, bool sent)
{
    if (status == 429 || (status == 0 && !sent)) /* nothing was done */
        return true;
    return method_is_repeatable(method) && (status == 0 || status_is_transient(status));
}

static int64_t backoff_ms(unsigned tries)
{
    int64_t delay = BACKOFF_BASE_MS;
    for (unsigned i = 1; i < tries && delay < BACKOFF_MAX_MS; i++)
        delay *= 2;
    return delay < BACKOFF_MAX_MS ? delay : BACKOFF_MAX_MS;
}

int64_t http_retry_delay_ms(const char *method, HttpRetry retry, unsigned tries, unsigned max_tries,
                            int status, bool sent, int64_t retry_after_ms, double jitter)
{
    if (retry == HTTP_RETRY_NEVER || tries >= max_tries || !may_repeat(method, status, sent))
        return -1;
    int64_t half = backoff_ms(tries) / 2;
    int64_t spread = (int64_t)((double)half * jitter);
    if (retry_after_ms <= 0)
        return half + spread;
    return (retry_after_ms < RETRY_AFTER_MAX_MS ? retry_after_ms : RETRY_AFTER_MAX_MS) + spread;
}
