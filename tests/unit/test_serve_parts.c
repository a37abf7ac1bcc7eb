/* Parts of the service that need no HTTP: rates and tokens, the file of tokens, frames between
 * processes, listening addresses. */
#include <sys/socket.h>
#include <sys/stat.h>

#include "serve/address.h"
#include "serve/frame.h"
#include "serve/client_limits.h"
#include "serve/tokens.h"
#include "tests/check.h"

static struct dl_limits limits; /* 64 kB */

static void rate(void **state) {
    double wait_s;
    dl_limits_init(&limits, 10, 1);
    for (int i = 0; i < 20; i++) /* the burst: two seconds' worth */
        assert_true(dl_limits_take(&limits, "10.0.0.1", 100, &wait_s));
    assert_false(dl_limits_take(&limits, "10.0.0.1", 100, &wait_s));
    check_close(wait_s, 0.1, 1e-9);
    assert_true(dl_limits_take(&limits, "10.0.0.2", 100, &wait_s)); /* another client */
    assert_false(dl_limits_take(&limits, "10.0.0.1", 100.05, &wait_s));
    check_close(wait_s, 0.05, 1e-9);
    assert_true(dl_limits_take(&limits, "10.0.0.1", 100.11, &wait_s));
    assert_false(dl_limits_take(&limits, "10.0.0.1", 99, &wait_s)); /* a clock that goes back */
    dl_limits_init(&limits, 0, 1);
    for (int i = 0; i < 1000; i++) assert_true(dl_limits_take(&limits, "x", 1, &wait_s));
}

static enum dl_code read_tokens(const char *text, mode_t mode, int *count, struct dl_err *err,
                                char *first, size_t first_size) {
    char path[] = "/tmp/dlmodel-tokens-XXXXXX";
    struct dl_arena arena = {0};
    const char *tokens[DL_MAX_TOKENS];
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    const enum dl_code code = dl_tokens_read(path, &arena, tokens, count, err);
    if (code == DL_OK) snprintf(first, first_size, "%s", tokens[0]);
    unlink(path);
    dl_arena_free(&arena);
    return code;
}

static void token_file(void **state) {
    struct dl_err err = {0};
    char first[64];
    int count;
    assert_int_equal(read_tokens("# staff\n\n0123456789abcdef # ops\r\nanother-token-0002", 0600,
                                 &count, &err, first, sizeof first),
                     DL_OK);
    assert_int_equal(count, 2);
    assert_string_equal(first, "0123456789abcdef");
    assert_int_not_equal(read_tokens("ok-0123456789abcdef\nshort\n", 0600, &count, &err, first, 64),
                         DL_OK);
    assert_int_equal(err.line, 2);
    assert_int_not_equal(read_tokens("0123456789abcdef\n", 0640, &count, &err, first, 64), DL_OK);
    check_contains(err.message, "chmod 600");
    assert_int_not_equal(read_tokens("# none\n", 0600, &count, &err, first, 64), DL_OK);
    assert_int_equal(dl_tokens_read(NULL, NULL, NULL, &count, &err), DL_OK);
    assert_int_equal(count, 0);
}

static void frames(void **state) {
    int pair[2];
    char *bytes;
    const struct dl_frame out = {.kind = DL_FRAME_ANSWER, .status = 200, .bytes = 5};
    struct dl_frame in, huge = {.bytes = (uint64_t)DL_FRAME_MAX_BYTES + 1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_true(dl_frame_write(pair[0], &out, "he\0lo"));
    assert_true(dl_frame_read(pair[1], &in, &bytes));
    assert_memory_equal(&in, &out, sizeof in);
    assert_memory_equal(bytes, "he\0lo", 6); /* and a NUL behind */
    free(bytes);
    assert_true(send(pair[0], &huge, sizeof huge, 0) == (ssize_t)sizeof huge);
    assert_false(dl_frame_read(pair[1], &in, &bytes));
    assert_null(bytes);
    assert_true(send(pair[0], &out, sizeof out, 0) == (ssize_t)sizeof out);
    close(pair[0]); /* gone before the bytes came */
    assert_false(dl_frame_read(pair[1], &in, &bytes));
    assert_null(bytes);
    close(pair[1]);
}

static void addresses(void **state) {
    const char *const bad[] = {"",
                               "nowhere",
                               "127.0.0.1",
                               "127.0.0.1:",
                               ":80",
                               "::1:80",
                               "[::1]",
                               "127.0.0.1:99999",
                               "127.0.0.1:0",
                               "127.0.0.1:http",
                               "127.0.0.1:-1",
                               "127.0.0.1:0000080",
                               NULL};
    for (int i = 0; bad[i] != NULL; i++) {
        struct dl_err err = {0};
        int fd;
        if (dl_address_listen(bad[i], &fd, &err) != DL_ERR_USAGE) fail_msg("%s", bad[i]);
        check_contains(err.message, "--listen");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate),
        cmocka_unit_test(token_file),
        cmocka_unit_test(frames),
        cmocka_unit_test(addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
