/* The bytes of JSON, one at a time: every UTF-8 sequence against the ranges of RFC 3629, every
 * short number against the grammar of RFC 8259, texts cut anywhere. */
#include "model/core/json.h"
#include "model/core/json_node.h"
#include "tests/check.h"

/* RFC 3629: the bits of the bytes give a code point; the shortest form, no surrogates, at most
 * U+10FFFF. */
static size_t character(const unsigned char *text, size_t length) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (length == 0) return 0;
    const size_t bytes = text[0] < 0x80   ? 1
                         : text[0] < 0xc0 ? 0
                         : text[0] < 0xe0 ? 2
                         : text[0] < 0xf0 ? 3
                         : text[0] < 0xf8 ? 4
                                          : 0;
    if (bytes == 1 || bytes == 0 || bytes > length) return bytes == 1;
    uint32_t code = text[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if (text[i] < 0x80 || text[i] > 0xbf) return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
    return bytes;
}

static void every_sequence(void **state) {
    static const unsigned char ends[] = {0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    unsigned char text[4];
    for (unsigned first = 0; first < 256; first++) {
        for (unsigned second = 0; second < 256; second++) {
            for (unsigned end = 0; end < 36; end++) {
                text[0] = (unsigned char)first, text[1] = (unsigned char)second;
                text[2] = ends[end / 6], text[3] = ends[end % 6];
                for (size_t length = 0; length <= 4; length++) {
                    const size_t expected = character(text, length);
                    if (dl_utf8_bytes((const char *)text, length) != expected)
                        fail_msg("%02x %02x %02x %02x, %d bytes: expected %d", first, second,
                                 text[2], text[3], (int)length, (int)expected);
                }
            }
        }
    }
}

/* Lines end after a line feed; both count from 1; no place has neither. */
static void positions(void **state) {
    static const char text[] = "ab\n\nc\r\nd";
    static const int lines[] = {1, 1, 1, 2, 3, 3, 3, 4, 4}, cols[] = {1, 2, 3, 1, 1, 2, 3, 1, 2};
    int line, col;
    for (size_t place = 0; place <= 8; place++) {
        dl_json_position(text, 8, place, &line, &col);
        assert_int_equal(line, lines[place]);
        assert_int_equal(col, cols[place]);
    }
    dl_json_position(text, 8, 9, &line, &col);
    assert_true(line == 0 && col == 0);
    dl_json_position(text, 8, DL_NO_PLACE, &line, &col);
    assert_true(line == 0 && col == 0);
}

/* What a text is refused for, or "" where it is JSON: the message, with its column. */
static const char *refusal(const char *text, size_t length) {
    static char message[1100];
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_json *doc;
    message[0] = '\0';
    if (dl_json_parse("t", text, length, &arena, &doc, &err) != DL_OK)
        snprintf(message, sizeof message, "%d: %s", err.col, err.message);
    dl_arena_free(&arena);
    return message;
}
static const char *of(const char *text) { return refusal(text, strlen(text)); }

static bool accepts(const char *value) {
    char text[200];
    snprintf(text, sizeof text, "{\"a\": %s}", value);
    const bool alone = of(text)[0] == '\0';
    snprintf(text, sizeof text, "[%s, %s]", value, value);
    assert_int_equal(of(text)[0] == '\0', alone);
    snprintf(text, sizeof text, "[true, %s ]", value);
    assert_int_equal(of(text)[0] == '\0', alone);
    return alone;
}

/* number = [ "-" ] int [ "." digits ] [ ("e" | "E") [ "+" | "-" ] digits ], where int is 0 or
 * begins with 1 to 9. */
static bool is_number(const char *c) {
    size_t digits = 0;
    if (*c == '-') c++;
    const bool zero = *c == '0';
    for (; *c >= '0' && *c <= '9'; c++) digits++;
    if (digits == 0 || (zero && digits > 1)) return false;
    if (*c == '.') {
        digits = 0;
        for (c++; *c >= '0' && *c <= '9'; c++) digits++;
        if (digits == 0) return false;
    }
    if (*c == 'e' || *c == 'E') {
        digits = 0;
        c++;
        if (*c == '+' || *c == '-') c++;
        for (; *c >= '0' && *c <= '9'; c++) digits++;
        if (digits == 0) return false;
    }
    return *c == '\0';
}

/* Every text of up to five of the characters of numbers. */
static void numbers(void **state) {
    static const char signs[] = "-+.eE019";
    char text[8];
    for (int length = 1; length <= 4; length++) {
        for (int n = 0; n < 1 << 3 * length; n++) {
            for (int i = 0; i < length; i++) text[i] = signs[n >> 3 * i & 7];
            text[length] = '\0';
            if (accepts(text) != is_number(text)) fail_msg("%s", text);
        }
    }
    char digits[80];
    for (int length = 58; length <= 62; length++) {
        memset(digits, '3', sizeof digits);
        digits[1] = '.', digits[length] = '\0';
        assert_int_equal(accepts(digits), length <= 60);
        digits[0] = '-', digits[1] = '4', digits[2] = '.';
        assert_int_equal(accepts(digits), length <= 60);
    }
}

/* A text that is cut at any byte is refused. */
static void cut_anywhere(void **state) {
    static const char whole[] =
        "{\"a\": [1, 2.5e3, {\"b\\u00e9\": \"\xc3\xa9 \\ud83d\\ude00\"}, true, false, null, []]}";
    assert_string_equal(of(whole), "");
    for (size_t length = 1; length + 1 < sizeof whole; length++)
        if (refusal(whole, length)[0] == '\0') fail_msg("accepted %d bytes", (int)length);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sequence),
        cmocka_unit_test(positions),
        cmocka_unit_test(numbers),
        cmocka_unit_test(cut_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
