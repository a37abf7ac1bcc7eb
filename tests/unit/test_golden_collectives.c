/* Collectives and what is predicted of them, as tests/golden/collectives.txt records it: one line
 * per request, as predictions ask (the time never falls with size) or, with `exact`, as compare
 * does. All lines share one memory of NCCL's graphs. `make golden-accept` rewrites the outcomes. */
#include "model/catalog/data.h"
#include "model/network/collective.h"
#include "model/network/libraries/nccl.h"
#include "tests/text_cases.h"

enum { SYSTEMS = 512, CHANGES = 8 };

/* Systems with their changes ("dgx-h100 links.inter.latency=9us"), each loaded once. */
struct known {
    const char *words;
    const struct dl_system *system;
};
struct bench {
    char directory[TEXT_CASE_BYTES];
    struct dl_arena arena;
    struct dl_nccl_memo memo;
    struct known systems[SYSTEMS];
    int count;
};

static const struct dl_system *system_of(struct bench *b, const char *words) {
    const char *directories[] = {b->directory};
    struct dl_override changes[CHANGES] = {{0}};
    struct dl_data data = {.directories = directories, .directory_count = 1, .overrides = changes};
    struct dl_err err = {0};
    for (int i = 0; i < b->count; i++)
        if (strcmp(b->systems[i].words, words) == 0) return b->systems[i].system;
    char *rest = dl_arena_printf(&b->arena, "%s", words), *name = strtok_r(rest, " ", &rest);
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        char *value = strchr(word, '=');
        assert_true(value != NULL && data.override_count < CHANGES);
        *value++ = 0;
        changes[data.override_count++] = (struct dl_override){.key = word, .value = value};
    }
    assert_true(b->count < SYSTEMS);
    struct known *k = &b->systems[b->count++];
    k->words = dl_arena_printf(&b->arena, "%s", words);
    if (dl_data_system(&data, name, &b->arena, &k->system, &err) != DL_OK)
        fail_msg("%s: %s", words, err.message);
    for (int i = 0; i < data.override_count; i++)
        if (!changes[i].used) fail_msg("%s: no field %s", words, changes[i].key);
    return k->system;
}

static int index_of(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return i;
    fail_msg("%s: neither a library nor a collective", name);
    return 0;
}

/* One word of a request; any other word changes the system. */
static void take(const char *word, struct dl_collective_request *r, char *system) {
    const struct {
        const char *key;
        int64_t *member;
    } counts[] = {{"nodes=", &r->nodes},       {"ranks=", &r->ranks_per_node},
                  {"group=", &r->group_size},  {"stride=", &r->group_stride},
                  {"groups=", &r->concurrent}, {"domain=", &r->domain_nodes},
                  {"apart=", &r->node_stride}, {"span=", &r->span_nodes}};
    const struct {
        const char *word;
        bool *member;
    } truths[] = {{"exact", &r->allow_decreasing},
                  {"device-buffers", &r->device_buffers},
                  {"device-direct", &r->device_direct}};
    const char *value = strchr(word, '=');
    const size_t key = value != NULL ? (size_t)(++value - word) : strlen(word);
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++)
        if (strcmp(word, truths[i].word) == 0) *truths[i].member = true;
    if (value == NULL) return;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (strncmp(word, counts[i].key, key) != 0 || counts[i].key[key] != 0) continue;
        *counts[i].member = strtoll(value, NULL, 10);
        return;
    }
    if (strncmp(word, "bytes=", key) == 0)
        r->bytes = strtod(value, NULL);
    else if (strncmp(word, "flows=", key) == 0)
        r->flows_per_adapter = strtod(value, NULL);
    else if (strncmp(word, "algorithm=", key) == 0)
        r->algorithm = value;
    else if (strncmp(word, "protocol=", key) == 0)
        r->protocol = value;
    else
        strcat(strcat(system, " "), word);
}

/* "nccl all_reduce dgx-h100 nodes=4 ranks=8 bytes=4096 group=2 links.inter.latency=9us" */
static void outcome(void *user, const char *line, char *out) {
    struct bench *b = user;
    struct dl_collective_request r = {.nodes = 1, .ranks_per_node = 1, .memo = &b->memo};
    char words[TEXT_CASE_BYTES], system[TEXT_CASE_BYTES], *rest = words;
    struct dl_collective_time t;
    struct dl_err err = {0};
    snprintf(words, sizeof words, "%s", line);
    r.library =
        (enum dl_library)index_of(dl_library_names, DL_LIBRARIES, strtok_r(rest, " ", &rest));
    r.op = (enum dl_collective_op)index_of(dl_collective_op_names, DL_COLL_OPS,
                                           strtok_r(rest, " ", &rest));
    snprintf(system, sizeof system, "%s", strtok_r(rest, " ", &rest));
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) take(word, &r, system);
    if (dl_collective_time(system_of(b, system), &r, &t, &err) != DL_OK) {
        snprintf(out, TEXT_CASE_BYTES, "refused: %s", err.message);
        return;
    }
    snprintf(out, TEXT_CASE_BYTES,
             "%s%s%s latency_s=%.6g bandwidth_s=%.6g limit=%s steps=%g channels=%g sigma=%g %s",
             t.algorithm, t.protocol != NULL ? "/" : "", t.protocol != NULL ? t.protocol : "",
             t.latency_s, t.bandwidth_s, t.limit != NULL ? t.limit : "-", t.steps, t.channels,
             t.sigma_log, t.origin);
}

static void every_collective(void **state) {
    static struct bench b;
    snprintf(b.directory, sizeof b.directory, "%s/data", check_root());
    check_text_cases("collectives.txt", outcome, text_case_close, &b);
    dl_arena_free(&b.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_collective)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
