/* load(text(x)) is x, to the last bit of each double; and text(load(text(x))) is text(x). 1000
 * random objects. */
#include "model/core/json.h"
#include "tests/check.h"
#include "tests/rich_schema.h"

enum { CASES = 1000 };

static uint64_t seed = 0x5eed0004;

static bool chance(void) { return check_random(&seed) & 1; }

static int below(int limit) { return (int)(check_random(&seed) % (uint64_t)limit); }

/* Any finite double: all bit patterns are as likely. */
static double any_double(void) {
    for (;;) {
        uint64_t bits = check_random(&seed);
        double value;

        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) return value;
    }
}

static const char *any_text(struct dl_arena *arena, bool may_be_empty) {
    static const char *const pieces[] = {
        "a", "\"",  "\\", "/", "\n", "\x01", "\x7f", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
        ".", "[0]", " ",  "1", "e5"};
    char text[64] = "";
    int count = below(8) + (may_be_empty ? 0 : 1);

    for (int i = 0; i < count; i++) strcat(text, pieces[below(15)]);
    return dl_arena_strdup(arena, text);
}

static void any_link(struct rich_link *link, bool present) {
    *link = (struct rich_link){false, (double)NAN, (double)NAN};
    if (!present) return;
    link->up = chance();
    if (chance()) link->latency_s = 10 * check_uniform(&seed);
    link->bandwidth_bytes_per_s = 1 + 1e14 * check_uniform(&seed);
}

static void any_facts(struct dl_arena *arena, struct rich *r) {
    r->fact_count = below(4);
    r->facts =
        r->fact_count > 0 ? dl_arena_alloc(arena, (size_t)r->fact_count, sizeof *r->facts) : NULL;
    for (int i = 0; i < r->fact_count; i++) {
        int kind = below(3);
        char number[DL_NUMBER_TEXT];

        r->facts[i].key = dl_arena_printf(arena, "%d.%s", i, any_text(arena, true));
        r->facts[i].number = kind == 0 ? any_double() : kind == 1 ? below(2) : (double)NAN;
        dl_number_text(r->facts[i].number, number);
        r->facts[i].text = kind == 0   ? dl_arena_strdup(arena, number)
                           : kind == 1 ? (r->facts[i].number != 0 ? "true" : "false")
                                       : any_text(arena, true);
    }
}

static struct rich any_rich(struct dl_arena *arena) {
    struct rich r = {.ratio = chance() ? any_double() : (double)NAN,
                     .size_bytes = chance() ? 1e18 * check_uniform(&seed) : (double)NAN,
                     .limited = chance() ? 2 * check_uniform(&seed) - 1 : (double)NAN,
                     .fallback_s = any_double(),
                     .count = chance() ? 1 + below(1000000) : DL_ABSENT,
                     .fallback_count = below(100) - 50,
                     .flag = chance(),
                     .fallback_flag = chance(),
                     .title = any_text(arena, true),
                     .color = below(4) - 1,
                     .fallback_color = below(3),
                     .shape = chance() ? any_text(arena, false) : NULL,
                     .has_intra = chance(),
                     .item_count = below(4),
                     .number_count = below(5),
                     .shape_count = below(3),
                     .word_count = below(3),
                     .twin_s = (double)NAN,
                     .twin_bytes = chance() ? any_double() : (double)NAN};

    any_link(&r.intra, r.has_intra);
    any_link(&r.inter, chance());
    r.items =
        r.item_count > 0 ? dl_arena_alloc(arena, (size_t)r.item_count, sizeof *r.items) : NULL;
    for (int i = 0; i < r.item_count; i++) {
        struct rich_item *item = &r.items[i];

        item->name = any_text(arena, true);
        item->alpha_s = chance() ? check_uniform(&seed) : (double)NAN;
        item->beta_s_per_byte = chance() ? 1e-12 : (double)NAN;
        item->point_count = below(3);
        item->points = item->point_count > 0
                           ? dl_arena_alloc(arena, (size_t)item->point_count, sizeof(double))
                           : NULL;
        for (int j = 0; j < item->point_count; j++) item->points[j] = any_double();
    }
    r.numbers =
        r.number_count > 0 ? dl_arena_alloc(arena, (size_t)r.number_count, sizeof(double)) : NULL;
    for (int i = 0; i < r.number_count; i++) r.numbers[i] = 2e6 * check_uniform(&seed) - 1e6;
    r.shapes =
        r.shape_count > 0 ? dl_arena_alloc(arena, (size_t)r.shape_count, sizeof(char *)) : NULL;
    for (int i = 0; i < r.shape_count; i++) r.shapes[i] = any_text(arena, false);
    r.words = r.word_count > 0 ? dl_arena_alloc(arena, (size_t)r.word_count, sizeof(char *)) : NULL;
    for (int i = 0; i < r.word_count; i++) r.words[i] = any_text(arena, true);
    any_facts(arena, &r);
    return r;
}

#define same_bits(a, b)                                                                            \
    do {                                                                                           \
        double same_a = (a), same_b = (b);                                                         \
        if (!(isnan(same_a) && isnan(same_b)) && memcmp(&same_a, &same_b, sizeof same_a) != 0)     \
            fail_msg("%s:%d: %s: wrote %.17g, read %.17g", __FILE__, __LINE__, #a, same_a,         \
                     same_b);                                                                      \
    } while (0)

static void same_text(const char *a, const char *b) {
    if (a == NULL || b == NULL)
        assert_true(a == b);
    else
        assert_string_equal(a, b);
}

static void same_link(const struct rich_link *a, const struct rich_link *b) {
    same_bits(a->latency_s, b->latency_s);
    same_bits(a->bandwidth_bytes_per_s, b->bandwidth_bytes_per_s);
    assert_int_equal(a->up, b->up);
}

static void same_rich(const struct rich *a, const struct rich *b) {
    same_bits(a->ratio, b->ratio);
    same_bits(a->size_bytes, b->size_bytes);
    same_bits(a->limited, b->limited);
    same_bits(a->fallback_s, b->fallback_s);
    same_bits(a->twin_bytes, b->twin_bytes);
    assert_true(a->count == b->count && a->fallback_count == b->fallback_count);
    assert_true(a->flag == b->flag && a->fallback_flag == b->fallback_flag);
    assert_true(a->color == b->color && a->fallback_color == b->fallback_color);
    same_text(a->title, b->title);
    same_text(a->shape, b->shape);
    assert_int_equal(a->has_intra, b->has_intra);
    same_link(&a->intra, &b->intra);
    same_link(&a->inter, &b->inter);
    assert_true(a->item_count == b->item_count && a->number_count == b->number_count);
    assert_true(a->shape_count == b->shape_count && a->word_count == b->word_count &&
                a->fact_count == b->fact_count);
    for (int i = 0; i < a->item_count; i++) {
        same_text(a->items[i].name, b->items[i].name);
        same_bits(a->items[i].alpha_s, b->items[i].alpha_s);
        same_bits(a->items[i].beta_s_per_byte, b->items[i].beta_s_per_byte);
        assert_int_equal(a->items[i].point_count, b->items[i].point_count);
        for (int j = 0; j < a->items[i].point_count; j++)
            same_bits(a->items[i].points[j], b->items[i].points[j]);
    }
    for (int i = 0; i < a->number_count; i++) same_bits(a->numbers[i], b->numbers[i]);
    for (int i = 0; i < a->shape_count; i++) same_text(a->shapes[i], b->shapes[i]);
    for (int i = 0; i < a->word_count; i++) same_text(a->words[i], b->words[i]);
    for (int i = 0; i < a->fact_count; i++) {
        same_text(a->facts[i].key, b->facts[i].key);
        same_text(a->facts[i].text, b->facts[i].text);
        same_bits(a->facts[i].number, b->facts[i].number);
    }
}

static void test_round_trip(void **state) {
    for (int i = 0; i < CASES; i++) {
        struct dl_arena arena = {0};
        struct rich wrote = any_rich(&arena), read;
        char *text = dl_json_text(&rich_schema, &wrote, &arena), *again;
        struct dl_json *doc;
        struct dl_err err;

        assert_non_null(text);
        if (dl_json_parse("case", text, strlen(text), &arena, &doc, &err) != DL_OK ||
            dl_json_load(doc, &rich_schema, &arena, &read, &err) != DL_OK)
            fail_msg("case %d: %d:%d: %s: %s in\n%s", i, err.line, err.col, err.key, err.message,
                     text);
        same_rich(&wrote, &read);
        again = dl_json_text(&rich_schema, &read, &arena);
        assert_string_equal(text, again);
        dl_arena_free(&arena);
    }
}

/* The shortest text of a double reads back as that double. */
static void test_number_text(void **state) {
    char text[DL_NUMBER_TEXT];

    for (int i = 0; i < 20 * CASES; i++) {
        double value = any_double();

        dl_number_text(value, text);
        same_bits(value, strtod(text, NULL));
    }
    dl_number_text(-0.0, text);
    assert_string_equal(text, "-0");
    dl_number_text(0.1, text);
    assert_string_equal(text, "0.1");
    dl_number_text(5e-324, text);
    same_bits(5e-324, strtod(text, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_number_text)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
