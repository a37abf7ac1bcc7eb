/* The table of routes: methods, paths that go on, and paths that only look like one. */
#include "serve/routes.h"
#include "tests/check.h"

#ifdef DL_HAVE_MICROHTTPD
static const struct dl_route *find(const char *method, const char *path, const char **rest,
                                   const char **allowed) {
    return dl_route_find(method, path, rest, allowed);
}

static void methods(void **state) {
    const char *rest;
    const char *allowed;
    assert_string_equal(find("POST", "/v1/predict", &rest, &allowed)->command, "predict");
    assert_null(allowed);
    assert_null(find("GET", "/v1/predict", &rest, &allowed));
    assert_string_equal(allowed, "POST"); /* 405 */
    assert_string_equal(find("HEAD", "/healthz", &rest, &allowed)->path, "/healthz");
    assert_null(find("HEAD", "/v1/predict", &rest, &allowed));
    assert_null(find("POST", "/healthz", &rest, &allowed));
    assert_string_equal(allowed, "GET, HEAD");
}

static void paths(void **state) {
    const char *rest;
    const char *allowed;
    assert_non_null(find("GET", "/v1/schema/system", &rest, &allowed));
    assert_string_equal(rest, "system");
    assert_non_null(find("POST", "/v1/import/onnx", &rest, &allowed));
    assert_string_equal(rest, "onnx");
    const char *none[] = {"",   "/v1", "/v1/predict/", "/v1/predictx", "/index.html", "//",
                          "v1", NULL};
    for (int i = 0; none[i] != NULL; i++) {
        assert_null(find("GET", none[i], &rest, &allowed));
        assert_null(allowed); /* 404 */
    }
}

static void table(void **state) {
    int count = 0;
    for (const struct dl_route *r = dl_routes; r->path != NULL; r++, count++) {
        const char *rest;
        const char *allowed;
        assert_ptr_equal(find(r->method, r->path, &rest, &allowed), r); /* no row hides another */
        assert_true((r->kind == DL_ROUTE_STATIC) == (r->answer == NULL));
        assert_non_null(r->summary);
    }
    assert_int_equal(count, dl_route_count());
}
#else
static void methods(void **state) {
    print_message("skip routes: built without libmicrohttpd (Debian package libmicrohttpd-dev)\n");
    skip();
}
#define paths methods
#define table methods
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods),
        cmocka_unit_test(paths),
        cmocka_unit_test(table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
