/* The bytes of JSON, one at a time: every UTF-8 sequence against the ranges of RFC 3629, every
 * escape, number and end of a value against the grammar of RFC 8259. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
    (void)state;
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

/* A value ends before a comma, a closing bracket or white space, and a string after its quote. */
static void ends_of_values(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        const char text[] = {'1', '2', (char)c, '3'};
        const bool end = c != 0 && strchr(",]} \t\r\n", c) != NULL,
                   space = c != 0 && strchr(" \t\r\n", c) != NULL;
        assert_int_equal(dl_json_skip_scalar(text, 4, 0), end ? 2 : 4);
        assert_int_equal(dl_json_skip_scalar(text, 4, 1), end ? 2 : 4);
        assert_int_equal(dl_json_skip_scalar(text, 2, 0), 2);
        const char blanks[] = {' ', (char)c, ' ', 'x'};
        assert_int_equal(dl_json_skip_space(blanks, 4, 0), space ? 3 : 1);
        assert_int_equal(dl_json_skip_space(blanks, 4, 2), 3);
        assert_int_equal(dl_json_skip_space(blanks, 3, 2), 3);
        assert_int_equal(dl_json_skip_space(blanks, 3, 3), 3);
        assert_int_equal(dl_json_skip_space("\n\n\n", 2, 0), 2);
        const char string[] = {'"', (char)c, 'a', '"', '1', '"'};
        assert_int_equal(dl_json_skip_scalar(string, 6, 0), c == '"' ? 2 : 4);
        const char escaped[] = {'"', '\\', (char)c, '"', '1', '"'};
        assert_int_equal(dl_json_skip_scalar(escaped, 6, 0), 4);
    }
    assert_int_equal(dl_json_skip_scalar("\"ab", 3, 0), 3);
    assert_int_equal(dl_json_skip_scalar("\"ab\\", 4, 0), 4);
    assert_int_equal(dl_json_skip_scalar("\"ab\"", 3, 0), 3);
    assert_int_equal(dl_json_skip_scalar("12", 2, 2), 2);
}

/* Lines end after a line feed; both count from 1; no place has neither. */
static void positions(void **state) {
    (void)state;
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
    (void)state;
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
    assert_string_equal(
        of("{\"a\": 1.11111111111111111111111111111111111111111111111111111111111}"),
        "7: expected a number of at most 60 characters");
    assert_string_equal(of("{\"a\": 01}"), "7: expected a number without leading zeros");
    assert_string_equal(of("{\"a\": -}"), "8: expected a digit, got '}'");
    assert_string_equal(of("{\"a\": 1.}"), "9: expected a digit after the decimal point, got '}'");
    assert_string_equal(of("{\"a\": 1e}"), "9: expected a digit in the exponent, got '}'");
    assert_string_equal(of("{\"a\": 1e999}"), "7: expected a number within the range of a double");
}

static bool is_escape(const char *c, int high) {
    const char *hex = "0123456789abcdefABCDEF";
    if (c[0] != 'u') return c[0] != '\0' && strchr("\"\\/bfnrt", c[0]) != NULL;
    if (strspn(c + 1, hex) < 4) return false;
    const long code = strtol((char[]){c[1], c[2], c[3], c[4], 0}, NULL, 16);
    if (high) return code >= 0xdc00 && code <= 0xdfff;
    return code != 0 && !(code >= 0xd800 && code <= 0xdfff);
}

static void escapes(void **state) {
    (void)state;
    char text[40];
    for (int c = 1; c < 256; c++) {
        snprintf(text, sizeof text, "{\"a\": \"\\%c\"}", c == '"' || c == 'u' ? 'n' : c);
        assert_int_equal(of(text)[0] == '\0',
                         c == '"' || is_escape((char[]){(char)c, 'x', 0}, 0) || c == 'u');
        for (int at = 0; at < 4; at++) {
            char code[] = "u1aF9";
            if (c == '"' || c == '\\') continue;
            code[1 + at] = (char)c;
            snprintf(text, sizeof text, "{\"a\": \"\\%s\"}", code);
            assert_int_equal(of(text)[0] == '\0', is_escape(code, 0));
        }
    }
    static const char *const codes[] = {"0000", "0001", "d7ff", "d800", "DBFF", "dc00",
                                        "dfff", "DFFF", "e000", "ffff", "00e9"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char own[] = "u....";
        memcpy(own + 1, codes[i], 4);
        snprintf(text, sizeof text, "{\"a\": \"\\u%s\"}", codes[i]);
        assert_int_equal(of(text)[0] == '\0', is_escape(own, 0));
        snprintf(text, sizeof text, "{\"a\": \"\\ud800\\u%s\"}", codes[i]);
        assert_int_equal(of(text)[0] == '\0', is_escape(own, 1));
        snprintf(text, sizeof text, "{\"a\": \"\\uDBFF\\u%s\"}", codes[i]);
        assert_int_equal(of(text)[0] == '\0', is_escape(own, 1));
    }
    assert_string_equal(of("{\"a\": \"\\ud800xudc00\"}"),
                        "8: expected a low surrogate after a high one");
    assert_string_equal(of("{\"a\": \"\\ud800\\ndc00\"}"),
                        "8: expected a low surrogate after a high one");
    assert_string_equal(of("{\"a\": \"\\udc00\"}"),
                        "8: expected a high surrogate before a low one");
    assert_string_equal(of("{\"a\": \"\\u0000\"}"), "8: expected no \\u0000 in a string");
    assert_string_equal(of("{\"a\": \"\\u00g0\"}"),
                        "8: expected four hexadecimal digits after \\u");
    assert_string_equal(of("{\"a\": \"\\x\"}"),
                        "8: expected an escape such as \\n or \\u00e9 in a string");
}

/* Each text cut at each byte is refused, and what follows a whole one too. */
static void cut_anywhere(void **state) {
    (void)state;
    static const char whole[] =
        "{\"a\": [1, 2.5e3, {\"b\\u00e9\": \"\xc3\xa9 \\ud83d\\ude00\"}, true, false, null, []]}";
    assert_string_equal(of(whole), "");
    for (size_t length = 1; length + 1 < sizeof whole; length++)
        if (refusal(whole, length)[0] == '\0') fail_msg("accepted %d bytes", (int)length);
    assert_string_equal(of("{} x"), "4: expected nothing after the JSON value, got 'x'");
    assert_string_equal(of("{} \x01"), "4: expected nothing after the JSON value, got byte 0x01");
    assert_string_equal(of("{\"a\" 1}"), "6: expected ':' after a key, got '1'");
    assert_string_equal(of("{a: 1}"), "2: expected a key in double quotes, got 'a'");
    assert_string_equal(of("{\"a\": 1 2}"), "9: expected ',' or '}', got '2'");
    assert_string_equal(of("{\"a\": [1 2]}"), "10: expected ',' or ']', got '2'");
    assert_string_equal(of("{\"a\": [true 2]}"), "13: expected ',' or ']', got '2'");
    assert_string_equal(of("{\"a\": tru}"), "7: expected a value, got 't'");
    assert_string_equal(of("{\"a\": \"b"), "7: expected a closing quote for this string");
    assert_string_equal(of("{\"a\": \"\\"),
                        "9: expected the rest of an escape, got the end of the file");
    assert_string_equal(of("{\"a\": \"\x1f\"}"),
                        "8: expected no control character in a string, got byte 0x1f");
    assert_string_equal(of("{\"a\": \"\x80\"}"), "8: expected UTF-8 text, got byte 0x80");
    assert_string_equal(of("\xff\xfe{"),
                        "1: expected UTF-8 text, got UTF-16: save the file as UTF-8");
    assert_string_equal(of("\xfe\xff{"),
                        "1: expected UTF-8 text, got UTF-16: save the file as UTF-8");
    assert_string_equal(of(""), "0: expected a JSON object, got an empty file");
    assert_string_equal(of("\xef\xbb\xbf \n"), "0: expected a JSON object, got an empty file");
    assert_string_equal(of("\xef\xbb\xbf{}"), "");
    assert_string_equal(of(" \t\r\n{ } \n"), "");
}

/* The greatest depth is 64. */
static void depths(void **state) {
    (void)state;
    char text[400];
    for (int depth = 60; depth <= 68; depth++) {
        for (int i = 0; i < depth; i++) text[i] = '[', text[depth + i] = ']';
        text[2 * depth] = '\0';
        assert_int_equal(of(text)[0] == '\0', depth <= 64);
        text[2 * depth - 1] = '\0';
        assert_int_not_equal(of(text)[0], '\0');
    }
    text[130] = '\0';
    for (int i = 0; i < 65; i++) text[i] = '[', text[65 + i] = ']';
    assert_string_equal(of(text), "65: expected nesting of at most 64 levels");
}

/* A mark of the encoding is its three bytes and no others. A fault of the meaning is found without
 * anybody to tell. Bounds of a field hold unless both are 0. */
static void marks_and_meanings(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool taken;
    } cases[] = {{"\xef\xbb\xbf{}", true},   {"\xef\xbb\xbf 1", true}, {"\xef\xbb\xbe{}", false},
                 {"\xef\xbb{}", false},      {"\xefxx1", false},       {"\xef\xbbx{}", false},
                 {"{\"a\":1e999}", false},   {"[1,1e999]", false},     {"{\"a\":1,\"a\":2}", false},
                 {"{\"a\":1,\"b\":1}", true}};
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_json *doc;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t length = strlen(cases[i].text);
        if ((dl_json_parse("x", cases[i].text, length, &arena, &doc, &err) == DL_OK) !=
            cases[i].taken)
            fail_msg("case %zu", i);
        assert_int_equal(dl_json_parse("x", cases[i].text, length, &arena, &doc, NULL),
                         cases[i].taken ? DL_OK : DL_ERR_INPUT);
    }
    const struct dl_field below = {.key = "b", .min = -5, .max = 0},
                          above = {.key = "a", .min = 0, .max = 5}, any = {.key = "c"};
    assert_true(dl_field_in_range(&below, -5) && dl_field_in_range(&below, 0));
    assert_false(dl_field_in_range(&below, 1e-9) || dl_field_in_range(&below, -5.001));
    assert_true(dl_field_in_range(&above, 0) && dl_field_in_range(&above, 5));
    assert_false(dl_field_in_range(&above, -1e-9) || dl_field_in_range(&above, 5.001));
    assert_true(dl_field_in_range(&any, 1e300) && dl_field_in_range(&any, -1e300));
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sequence), cmocka_unit_test(ends_of_values),
        cmocka_unit_test(positions),      cmocka_unit_test(numbers),
        cmocka_unit_test(escapes),        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(depths),         cmocka_unit_test(marks_and_meanings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
