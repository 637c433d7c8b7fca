/* SPDX-License-Identifier: Apache-2.0 */
/* What an admin reads of the controller's writes, at level info. */
#include "controller/op_log.h"

#include "common/base/log.h"
#include "tests/unit/plan_fixture.h"

#include <sys/mman.h>
#include <unistd.h>

static int log_fd = -1;

static int setup(void **state)
{
    log_fd = memfd_create("log", MFD_CLOEXEC);
    log_set_fd(log_fd);
    log_init("controller", LOG_INFO, LOG_FORMAT_TEXT);
    return fx_setup(state);
}

static int teardown(void **state)
{
    log_set_fd(2);
    (void)close(log_fd);
    return fx_teardown(state);
}

/* The lines of all ops of the plan with this outcome, without their times; each names the
 * component. */
static const char *logged(Fixture *fx, ApiOutcome outcome, const char *message)
{
    const ApiResult result = {.outcome = outcome, .message = message};
    static char text[4096];
    ssize_t n;

    assert_int_equal(ftruncate(log_fd, 0), 0);
    assert_int_equal(lseek(log_fd, 0, SEEK_SET), 0);
    for (size_t i = 0; i < fx->plan.n_ops; i++)
        op_log("claim/ns/c", &fx->plan.ops[i], &result);
    n = pread(log_fd, text, sizeof(text) - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    return n > 0 ? text + strlen("2026-09-21T14:13:20.000000Z ") : text;
}

#define OF_POOL                                                                                    \
    ",'labels':{'" LABEL_WARM_POOL "':'P','" LABEL_TEMPLATE_REF "':'T'},'ownerReferences':[{"      \
    "'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxWarmPool','name':'p',"       \
    "'uid':'pu','controller':true}]"
#define OF_SANDBOX                                                                                 \
    ",'ownerReferences':[{'apiVersion':'agents.x-k8s.io/v1beta1','kind':'Sandbox','name':'m',"     \
    "'uid':'mu','controller':true}]"
#define MADE                                                                                       \
    ",'managedFields':[{'manager':'sandbox-controller','fieldsV1':{'f:spec':{'f:podTemplate':{"    \
    "'f:spec':{}},'f:containers':{}}}}]"

static void put_claim(Fixture *fx, uint64_t rv, const char *lifecycle)
{
    _cleanup_free_ char *spec = xasprintf("'warmPoolRef':{'name':'p'}%s", lifecycle);

    fx_put(fx, OBJ_POOL, "p", "pu", 1, "", "'sandboxTemplateRef':{'name':'t'}", "");
    fx_put(fx, OBJ_TEMPLATE, "t", "tu", 1, "", "'podTemplate':{'spec':{}}", "");
    fx_put(fx, OBJ_CLAIM, "c", "cu", rv, "", spec, "");
}

static void test_a_warm_and_a_cold_start(void **state)
{
    Fixture *fx = *state;

    put_claim(fx, 1, "");
    fx_plan(fx, KEY_CLAIM, "c");
    assert_str(logged(fx, API_OK, NULL),
               "info controller: sandbox created for a claim namespace=ns claim=c sandbox=c "
               "cause=\"no member of pool \\\"p\\\" could be had\"\n");
    fx_put(fx, OBJ_SANDBOX, "m", "mu", 2, OF_POOL, "",
           "'podIPs':['1'],'conditions':[{'type':'Ready','status':'True'}]");
    fx_put(fx, OBJ_POD, "m", "pm", 2, OF_SANDBOX, "",
           "'podIPs':[{'ip':'1'}],'conditions':[{'type':'Ready','status':'True'}]");
    fx_plan(fx, KEY_CLAIM, "c");
    assert_str(logged(fx, API_OK, NULL),
               "info controller: sandbox adopted namespace=ns claim=c sandbox=m "
               "cause=\"from pool \\\"p\\\", ready\"\n");
    assert_str(logged(fx, API_CONFLICT, "was faster"), ""); /* it did not happen */
}

static void test_ends(void **state)
{
    Fixture *fx = *state;

    put_claim(fx, 1, ",'lifecycle':{'shutdownTime':'2026-09-21T14:13:20Z'}");
    fx_plan(fx, KEY_CLAIM, "c");
    assert_str(logged(fx, API_OK, NULL),
               "info controller: claim expired namespace=ns claim=c cause=\"its shutdownTime has "
               "passed (2026-09-21T14:13:20Z), shutdownPolicy Retain\"\n");
    fx_put(fx, OBJ_SANDBOX, "s", "su", 2, "",
           "'shutdownTime':'2026-09-21T14:13:19Z','shutdownPolicy':'Delete'", "");
    fx_plan(fx, KEY_SANDBOX, "s");
    assert_str(logged(fx, API_OK, NULL),
               "info controller: sandbox expired namespace=ns sandbox=s cause=\"its shutdownTime "
               "has passed (2026-09-21T14:13:19Z), shutdownPolicy Delete\"\n");
}

static void test_orphans(void **state)
{
    static char ns[] = "ns";
    Fixture *fx = *state;

    fx_put(fx, OBJ_SANDBOX, "lost", "lu", 1, ",'labels':{'" LABEL_CLAIM_UID "':'dead'}" MADE, "",
           "");
    fx->live[fx->n_live++] =
        (PlanLive){.type = NEED_LIST, .kind = OBJ_CLAIM, .ns = ns, .found = true};
    fx_plan(fx, KEY_ORPHANS_OF_CLAIMS, "");
    assert_str(logged(fx, API_OK, NULL),
               "info controller: orphan collected namespace=ns sandbox=lost cause=\"this Sandbox "
               "has no owner, and the SandboxClaim it was bound to no longer exists\"\n");
    fx_put(fx, OBJ_POOL, "p", "pu", 2, "", "'sandboxTemplateRef':{'name':'t'}", "");
    fx_put(fx, OBJ_SANDBOX, "m", "mu", 3, OF_POOL, "", "");
    world_remove(fx->world, OBJ_POOL, "ns", "p", "pu", 4, fx->now_ms);
    fx->now_ms += 2000;
    fx_plan(fx, KEY_SANDBOX, "m");
    assert_str(logged(fx, API_OK, NULL),
               "info controller: left behind and collected namespace=ns sandbox=m cause=\"the "
               "garbage collector left this Sandbox alone when its SandboxWarmPool went\"\n");
}

static void test_everyday_writes_say_nothing(void **state)
{
    Fixture *fx = *state;

    fx_put(fx, OBJ_SANDBOX, "s", "su", 1, "", "'service':true", "");
    fx_plan(fx, KEY_SANDBOX, "s");
    assert_non_null(fx_op(fx, "sandbox-status"));
    assert_str(logged(fx, API_OK, NULL), "");
    assert_str(logged(fx, API_REFUSED, "no"),
               "warn controller: API write key=claim/ns/c purpose=sandbox-status "
               "verb=patch-status name=s outcome=refused error=no\n");
    assert_str(logged(fx, API_UNKNOWN, NULL),
               "warn controller: API write key=claim/ns/c purpose=sandbox-status "
               "verb=patch-status name=s outcome=unknown\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_warm_and_a_cold_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_orphans, setup, teardown),
        cmocka_unit_test_setup_teardown(test_everyday_writes_say_nothing, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
